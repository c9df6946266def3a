-- lock_expired: take hold of attempts that a sweep wants to end, and of their jobs; what another transaction holds now is left
-- to it. Returns the jobs that are ours until this transaction ends.
WITH request AS (
  SELECT r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, r ->> 3 AS unit
    FROM jsonb_array_elements($1::jsonb) AS listed (r)
)
SELECT request.job_id
  FROM (SELECT * FROM request ORDER BY job_id) AS request
 CROSS JOIN LATERAL (
       SELECT 1 FROM jobs AS j WHERE j.job_id = request.job_id FOR NO KEY UPDATE SKIP LOCKED) AS j
 CROSS JOIN LATERAL (
       SELECT 1
         FROM attempts AS a
        WHERE a.job_id = request.job_id AND a.unit = request.unit AND a.attempt = request.attempt
          AND a.lease_id = request.lease_id
          FOR NO KEY UPDATE SKIP LOCKED) AS a
