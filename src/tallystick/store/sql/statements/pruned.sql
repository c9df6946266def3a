-- pruned: a page of the log of removals, in its order.
-- takes: after int, limit int
SELECT @names(PrunedRow) FROM pruned WHERE seq > :after ORDER BY seq LIMIT :limit
