-- group_facts: the groups of a job that follow a fact: the place of the fact, and what it says of the row besides.
-- takes: job_id text, after int, limit int
SELECT n, threshold, payload
  FROM steps
 WHERE job_id = :job_id AND n > :after AND kind = 'group'
 ORDER BY n
 LIMIT :limit
