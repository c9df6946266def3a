-- prune_effects: effects that ended long enough ago go, of jobs that are gone. No row changed: there were none.
-- takes: ended_by int, limit int
DELETE FROM effect_keys
 WHERE exec_id IN (SELECT e.exec_id
                     FROM effect_keys AS e
                    WHERE e.ended_at <= :ended_by AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = e.job_id)
                    ORDER BY e.ended_at
                    LIMIT :limit)
