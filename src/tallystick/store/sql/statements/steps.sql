-- steps: a page of the steps of a job, in the order of their places.
-- takes: job_id text, dimension int, name text, occurrence int, limit int
SELECT @names(StepRow)
  FROM steps
 WHERE job_id = :job_id AND (dimension, name, occurrence) > (:dimension, :name, :occurrence)
 ORDER BY dimension, name, occurrence
 LIMIT :limit
