-- jobs: a page of jobs, newest first; identifiers are in the order of submission, so the key is the cursor.
SELECT * FROM job_rows
 WHERE tenant_id = ?1
   AND (?2 = '[]' OR state IN (SELECT wanted.value FROM json_each(?2) AS wanted))
   AND (?3 IS NULL OR handler = ?3)
   AND job_id < coalesce(?4, char(1114111))
 ORDER BY job_id DESC
 LIMIT ?5
