-- effect_facts: the effects of a job whose steps follow a fact: the place of the fact and their own.
-- takes: job_id text, after int, limit int
SELECT n, dimension, name, occurrence
  FROM steps
 WHERE job_id = :job_id AND n > :after AND kind = 'effect'
 ORDER BY n
 LIMIT :limit
