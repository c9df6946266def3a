-- orphans: children that go on although their parent has ended, and were not meant to.
SELECT child.job_id
  FROM jobs AS child
 CROSS JOIN LATERAL (SELECT completed_at FROM jobs WHERE jobs.job_id = child.parent_job_id OFFSET 0) AS parent
 WHERE child.parent_job_id IS NOT NULL AND child.completed_at IS NULL AND child.detached = 0 AND child.state <> 'CANCELLING'
   AND parent.completed_at IS NOT NULL
 LIMIT $1::bigint
