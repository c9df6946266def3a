-- picture_parents: which of these jobs have children that have not ended and are not detached.
-- takes: jobs list
SELECT wanted.value
  FROM :jobs
 WHERE EXISTS (SELECT 1 FROM jobs WHERE parent_job_id = wanted.value AND completed_at IS NULL AND detached = 0)
