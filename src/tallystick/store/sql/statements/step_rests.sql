-- step_rests: a page of the steps, waits and groups of a job behind a place, with the columns that their facts do not tell.
-- takes: job_id text, dimension int, name text, occurrence int, limit int
SELECT @names(StepRest)
  FROM (SELECT steps.*, result IS NOT NULL OR error IS NOT NULL OR notes IS NOT NULL AS has_result,
               event_hash IS NOT NULL OR prev_hash IS NOT NULL AS has_hash, payload AS mode
          FROM steps
         WHERE job_id = :job_id AND (dimension, name, occurrence) > (:dimension, :name, :occurrence)) AS rests
 ORDER BY dimension, name, occurrence
 LIMIT :limit
