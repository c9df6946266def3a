-- cancellable: what decides how a job is cancelled, and the attempt that runs it, if any.
SELECT j.state, j.attempt, j.dimension, j.semaphore, j.start_acked_at, j.parent_job_id, j.parent_step,
       EXISTS (SELECT 1 FROM attempts AS a
                WHERE a.job_id = j.job_id AND a.unit = '' AND a.status IN ('LEASED', 'IN_PROGRESS'))
  FROM jobs AS j
 WHERE j.job_id = $1
