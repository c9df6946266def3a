-- charged: how many charged attempts jobs have had since they last made progress; those without any are left out.
SELECT wanted.key, count(*)
  FROM json_each(?1) AS wanted CROSS JOIN futile_attempts
 WHERE futile_attempts.job_id = wanted.key
 GROUP BY 1
