-- open_waits: what a job has open, the oldest first, and when the timer of each fires.
-- takes: job_id text, limit int
SELECT s.dimension, s.name, s.occurrence, s.kind, s.created_at, m.due_at, s.semaphore, s.threshold
  FROM steps AS s
  LEFT JOIN messages AS m
    ON m.job_id = s.job_id AND m.kind = 'timer' AND m.acked_at IS NULL
   AND m.dimension = s.dimension AND m.name = s.name AND m.occurrence = s.occurrence
 WHERE s.job_id = :job_id AND s.completed_at IS NULL AND s.kind <> 'protocol'
 ORDER BY s.created_at, s.dimension, s.name, s.occurrence
 LIMIT :limit
