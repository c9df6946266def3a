-- hold_ended: take hold of listed jobs that have ended, before it is judged whether they may go; what another transaction holds
-- now, to fork or retry it, is passed by: retention delays nothing.
SELECT job_id
  FROM jobs
 WHERE job_id IN (SELECT jsonb_array_elements_text($1::jsonb)) AND completed_at IS NOT NULL
 ORDER BY job_id
   FOR UPDATE SKIP LOCKED
