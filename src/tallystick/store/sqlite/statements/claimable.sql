-- claimable: the longest-waiting due jobs of one queue and priority that this worker can run.
SELECT job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash
  FROM jobs
 WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 AND hold IS NULL
   AND handler || ' ' || version IN (SELECT known.value FROM json_each(?4) AS known)
 ORDER BY ready_at
 LIMIT ?5
