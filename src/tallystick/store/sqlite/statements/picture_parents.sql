-- picture_parents: does a job have children that have not ended and are not detached.
SELECT EXISTS (SELECT 1 FROM jobs WHERE parent_job_id = ?1 AND completed_at IS NULL AND detached = 0)
