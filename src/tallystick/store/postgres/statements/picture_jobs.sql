-- picture_jobs: the facts of jobs (), and of the parents of those that may end (), that decisions read; with the newest
-- arrival in each inbox. In a statement of its own, after the lock: one that waited for it has seen older messages.
SELECT j.job_id, j.state, j.attempt, j.dimension, j.ready_at, j.hold, j.semaphore, j.root_ledger, j.start_ledger, j.start_acked_at,
       j.cancel_at, j.completed_at, j.rev, j.ledger_form, j.parent_job_id, j.parent_step,
       coalesce(newest.arrived, 0), coalesce(newest.created_at, 0), j.deadline_at, j.error_code
  FROM jobs AS j
  LEFT JOIN LATERAL (
       SELECT m.arrived, m.created_at
         FROM messages AS m
        WHERE m.job_id = j.job_id AND m.acked_at IS NULL AND m.arrived >= 0
        ORDER BY m.arrived DESC
        LIMIT 1) AS newest ON true
 WHERE j.job_id = ANY (ARRAY(SELECT unnest($1::text[])
                             UNION
                             SELECT parent_job_id FROM jobs WHERE job_id = ANY ($2::text[]) AND parent_step IS NOT NULL))
