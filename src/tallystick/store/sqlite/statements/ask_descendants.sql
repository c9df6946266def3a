-- ask_descendants: whatever is below a job, not detached and not ended is asked to end. What runs has time until `ends_at`;
-- what does not run is not due any more and has no time left.
-- takes: job_id, before list, asked, at, ends_at, code
WITH RECURSIVE below (job_id) AS (
  SELECT child.job_id
    FROM jobs AS child
   WHERE child.parent_job_id = :job_id AND child.completed_at IS NULL AND child.detached = 0
  UNION ALL
  SELECT child.job_id
    FROM below
    JOIN jobs AS child ON child.parent_job_id = below.job_id AND child.completed_at IS NULL AND child.detached = 0
)
UPDATE jobs
   SET state = :asked, hold = NULL, hold_reason = NULL, ready_at = NULL, error_code = :code, updated_at = :at, rev = rev + 1,
       cancel_at = iif(EXISTS (SELECT 1
                                 FROM attempts AS live
                                WHERE live.job_id = jobs.job_id AND live.unit = ''
                                  AND @is(held, live.status)), :ends_at, :at)
 WHERE job_id IN (SELECT below.job_id FROM below) AND state IN :before
