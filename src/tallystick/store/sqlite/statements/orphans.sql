-- orphans: children that go on although their parent has ended, and were not meant to. Found by hopping from parent to
-- parent: how many children an open parent has does not matter.
WITH RECURSIVE parents (job_id) AS (
  SELECT min(parent_job_id) FROM jobs WHERE parent_job_id IS NOT NULL AND completed_at IS NULL AND detached = 0
  UNION ALL
  SELECT (SELECT min(child.parent_job_id)
            FROM jobs AS child
           WHERE child.parent_job_id > parents.job_id AND child.completed_at IS NULL AND child.detached = 0)
    FROM parents
   WHERE parents.job_id IS NOT NULL
)
SELECT child.job_id
  FROM parents
  JOIN jobs AS parent ON parent.job_id = parents.job_id AND parent.completed_at IS NOT NULL
  JOIN jobs AS child ON child.parent_job_id = parent.job_id AND child.completed_at IS NULL AND child.detached = 0
 WHERE child.state <> 'CANCELLING'
 LIMIT ?1
