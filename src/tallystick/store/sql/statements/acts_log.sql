-- acts_log: a page of the chain of acts, in its order.
-- takes: after int, limit int
SELECT @names(ActRow) FROM acts WHERE seq > :after ORDER BY seq LIMIT :limit
