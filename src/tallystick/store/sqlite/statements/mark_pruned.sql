-- mark_pruned: jobs that ended long enough ago and owe nothing are marked, oldest first; their books go in this transaction.
-- Kept: a parent while any of its children is there, so children go first; a child until its parent may go; whatever has
-- a live or committed attempt, an open activity, an unacknowledged message or a directive that is not sent; and a job
-- whose group an open fork has a copy of, with its children, because the fork reads them where they are.
-- ?1 ended not later than this, ?2 at most so many, ?3 wall time. Returns who they are.
UPDATE jobs
   SET pruned_at = ?3
 WHERE pruned_at IS NULL AND completed_at <= ?1 AND job_id IN (
SELECT j.job_id
  FROM jobs AS j
 WHERE j.completed_at IS NOT NULL AND j.completed_at <= ?1
   AND NOT EXISTS (SELECT 1 FROM jobs AS child WHERE child.parent_job_id = j.job_id)
   AND NOT EXISTS (SELECT 1
                     FROM jobs AS parent
                    WHERE parent.job_id = j.parent_job_id AND (parent.completed_at IS NULL OR parent.completed_at > ?1))
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
 ORDER BY j.completed_at
 LIMIT ?2)
RETURNING job_id
