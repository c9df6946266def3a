-- Whatever is below these jobs, not detached and not ended is asked to end. Each level is held before the next is looked for:
-- what runs there can then start no more children, and its worker does not change. What does not run has no time left.
CREATE FUNCTION ask_descendants(
  parents TEXT[], before TEXT[], asked TEXT, at BIGINT, ends_at BIGINT, code TEXT
) RETURNS VOID LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  level TEXT[] := parents;
BEGIN
  LOOP
    SELECT array_agg(held.job_id)
      INTO level
      FROM (SELECT jobs.job_id FROM jobs WHERE jobs.open_parent = ANY (level) ORDER BY jobs.job_id FOR NO KEY UPDATE) AS held;
    EXIT WHEN level IS NULL;
    UPDATE jobs
       SET state = asked, hold = NULL, hold_reason = NULL, ready_at = NULL, error_code = code, updated_at = at, rev = rev + 1,
           cancel_at = CASE WHEN EXISTS (SELECT 1
                                           FROM attempts AS live
                                          WHERE live.job_id = jobs.job_id AND live.unit = ''
                                            AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED'))
                            THEN ends_at ELSE at END
     WHERE job_id = ANY (level) AND state = ANY (before);
  END LOOP;
END $$;

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
