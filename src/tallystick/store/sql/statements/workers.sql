-- workers: the workers that are known, the one that was heard last first.
-- takes: limit int
SELECT @names(WorkerRow) FROM workers ORDER BY heard_at DESC, owner LIMIT :limit
