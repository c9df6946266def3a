-- children: how the children of a group stand, in their order.
SELECT job_id, state, result, error, error_code, error_message
  FROM jobs
 WHERE parent_job_id = ?1 AND parent_step = ?2
 ORDER BY job_id
