-- cancellable: what decides how a job is cancelled, the lease of the attempt that runs it, if any, and its hold.
SELECT j.state, j.attempt, j.dimension, j.parent_job_id, j.parent_step,
       (SELECT a.lease_id
          FROM attempts AS a
         WHERE a.job_id = j.job_id AND a.unit = '' AND a.status IN ('LEASED', 'IN_PROGRESS')),
       j.hold
  FROM jobs AS j
 WHERE j.job_id = $1
