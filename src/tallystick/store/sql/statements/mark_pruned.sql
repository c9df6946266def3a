-- mark_pruned: of the listed jobs those that ended long enough ago and owe nothing are marked; their books go in this
-- transaction. Kept: a parent while any of its children is there, so children go first; a child until its parent may go;
-- a job to which a hook is owed; whatever has a live or committed attempt, an open activity, an unacknowledged message or a directive that is not sent;
-- and a job whose group an open fork has a copy of, with its children, because the fork reads them where they are.
-- Runs after `hold_ended`, so that what it sees stays true. Returns which these are, with the
-- end of each chain and when it was born.
-- takes: jobs list, ended_by int, wall int
UPDATE jobs AS j
   SET pruned_at = :wall, rev = rev + 1
 WHERE j.job_id IN :jobs AND j.pruned_at IS NULL AND j.completed_at <= :ended_by AND j.hook_due IS NULL
   AND NOT EXISTS (SELECT 1 FROM jobs AS child WHERE child.parent_job_id = j.job_id AND child.parent_step IS NOT NULL)
   AND NOT EXISTS (SELECT 1
                     FROM jobs AS parent
                    WHERE parent.job_id = j.parent_job_id AND j.parent_step IS NOT NULL
                      AND (parent.completed_at IS NULL OR parent.completed_at > :ended_by))
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS a
                    WHERE a.job_id = j.job_id AND @is(held, a.status))
   AND NOT EXISTS (SELECT 1 FROM steps AS s WHERE s.job_id = j.job_id AND s.completed_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.job_id = j.job_id AND m.acked_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.job_id = j.job_id AND o.state = 'PENDING')
   AND NOT EXISTS (SELECT 1
                     FROM steps AS copy
                     JOIN jobs AS fork ON fork.job_id = copy.job_id
                    WHERE copy.origin_job_id IN (j.job_id, j.parent_job_id) AND copy.kind = 'group'
                      AND fork.completed_at IS NULL)
RETURNING job_id, dimension, head_n, head_hash, created_at
