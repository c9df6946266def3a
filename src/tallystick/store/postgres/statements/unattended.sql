-- unattended: is there a lost lease, a job that is asked to end, or a child whose parent has ended.
-- $1 the clock the leases are on, $2 that clock's time if it is not this server's.
SELECT EXISTS (SELECT 1
                 FROM attempts AS a
                WHERE a.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')
                  AND (a.lease_epoch <> $1 OR a.lease_expires_at <= store_ms($2::bigint)))
    OR EXISTS (SELECT 1 FROM jobs WHERE asked_at IS NOT NULL)
    OR EXISTS (SELECT 1
                 FROM jobs AS child
                CROSS JOIN LATERAL (
                      SELECT completed_at FROM jobs WHERE jobs.job_id = child.parent_job_id OFFSET 0) AS parent
                WHERE child.open_parent IS NOT NULL AND parent.completed_at IS NOT NULL)
