-- strays: the next identifiers that rows of any table have for their job, and whether there is such a job.
-- takes: after text, limit int
SELECT named.job_id, jobs.job_id IS NOT NULL
  FROM (SELECT job_id FROM (SELECT DISTINCT job_id FROM attempts WHERE job_id > :after ORDER BY job_id LIMIT :limit) AS a
         UNION
        SELECT job_id FROM (SELECT DISTINCT job_id FROM steps WHERE job_id > :after ORDER BY job_id LIMIT :limit) AS s
         UNION
        SELECT job_id FROM (SELECT DISTINCT job_id FROM events WHERE job_id > :after ORDER BY job_id LIMIT :limit) AS e
         UNION
        SELECT job_id FROM (SELECT DISTINCT job_id FROM messages WHERE job_id > :after AND redeliveries >= 0 ORDER BY job_id LIMIT :limit) AS m
         UNION
        SELECT job_id FROM (SELECT DISTINCT job_id FROM outbox WHERE job_id > :after ORDER BY job_id LIMIT :limit) AS o
         UNION
        SELECT job_id FROM (SELECT DISTINCT job_id FROM job_values WHERE job_id > :after ORDER BY job_id LIMIT :limit) AS v) AS named
  LEFT JOIN jobs ON jobs.job_id = named.job_id
 ORDER BY named.job_id
 LIMIT :limit
