-- open_children: how many children of each group of a job have not ended.
SELECT parent_step, count(*)
  FROM jobs
 WHERE parent_job_id = ?1 AND completed_at IS NULL
 GROUP BY parent_step
