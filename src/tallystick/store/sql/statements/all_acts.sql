-- all_acts: a page of what people did, the newest first.
-- takes: kinds list, before int, limit int
SELECT @names(Act) FROM acts WHERE about IN :kinds AND seq < :before ORDER BY seq DESC LIMIT :limit
