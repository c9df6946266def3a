-- ids_with: jobs whose identifiers begin so, and are those of no children unless `children` says so.
-- takes: first text, last text, children int, limit int
SELECT job_id
  FROM jobs
 WHERE job_id >= :first AND job_id < :last AND (:children = 1 OR job_id NOT LIKE '%.%')
 ORDER BY job_id
 LIMIT :limit
