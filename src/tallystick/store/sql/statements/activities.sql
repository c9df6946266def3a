-- activities: a page of the waits, sleeps and groups of a job behind a place, each with the place of its fact and whether it is a
-- copy that a fork was born with.
-- takes: job_id text, dimension int, name text, occurrence int, limit int
SELECT @names(Activity), n, origin_job_id IS NOT NULL
  FROM steps
 WHERE job_id = :job_id AND (dimension, name, occurrence) > (:dimension, :name, :occurrence) AND kind <> 'step' AND kind <> 'tx'
 ORDER BY dimension, name, occurrence
 LIMIT :limit
