-- Children are asked to end in the bundle that ends or asks their parent. Those that were left to a sweep before are asked
-- now, and have no time left: no worker of that time runs them any more.

WITH RECURSIVE below (job_id) AS (
  SELECT child.job_id
    FROM jobs AS child
    JOIN jobs AS parent ON parent.job_id = child.parent_job_id
   WHERE child.completed_at IS NULL AND child.detached = 0 AND (parent.completed_at IS NOT NULL OR parent.state = 'CANCELLING')
  UNION
  SELECT child.job_id
    FROM below
    JOIN jobs AS child ON child.parent_job_id = below.job_id AND child.completed_at IS NULL AND child.detached = 0
)
UPDATE jobs
   SET state = 'CANCELLING', hold = NULL, hold_reason = NULL, ready_at = NULL, cancel_at = updated_at, rev = rev + 1
 WHERE job_id IN (SELECT below.job_id FROM below) AND state IN ('QUEUED', 'DISPATCHING', 'IN_PROGRESS');
