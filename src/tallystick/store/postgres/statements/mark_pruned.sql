-- mark_pruned: jobs that ended long enough ago and owe nothing are marked, oldest first; their books go in this transaction.
-- The oldest are found by their identifiers, which begin with the time: an index on the end would slow every ending.
-- Kept: a parent while any of its children is there, so children go first; a child until its parent may go; whatever has
-- a live or committed attempt, an open activity, an unacknowledged message or a directive that is not sent; and a job
-- whose group an open fork has a copy of, with its children, because the fork reads them where they are.
-- What anybody else holds now is passed by: nobody waits for retention.
-- $1 ended not later than this, $2 at most so many, $3 wall time. Returns who they are.
WITH old AS MATERIALIZED (
SELECT j.job_id
  FROM jobs AS j
 WHERE j.completed_at IS NOT NULL AND j.completed_at <= $1::bigint
   AND NOT EXISTS (SELECT 1 FROM jobs AS child WHERE child.parent_job_id = j.job_id)
   AND NOT EXISTS (SELECT 1
                     FROM jobs AS parent
                    WHERE parent.job_id = j.parent_job_id AND (parent.completed_at IS NULL OR parent.completed_at > $1::bigint))
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS a
                    WHERE a.job_id = j.job_id AND a.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED'))
   AND NOT EXISTS (SELECT 1 FROM steps AS s WHERE s.job_id = j.job_id AND s.completed_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.job_id = j.job_id AND m.acked_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.job_id = j.job_id AND o.state = 'PENDING')
   AND NOT EXISTS (SELECT 1
                     FROM steps AS copy
                     JOIN jobs AS fork ON fork.job_id = copy.job_id
                    WHERE copy.origin_job_id IN (j.job_id, j.parent_job_id) AND copy.kind = 'group'
                      AND fork.completed_at IS NULL)
 ORDER BY j.job_id
 LIMIT $2::bigint
   FOR UPDATE SKIP LOCKED
)
UPDATE jobs
   SET pruned_at = $3::bigint
  FROM old
 WHERE jobs.job_id = old.job_id AND jobs.pruned_at IS NULL
RETURNING jobs.job_id
