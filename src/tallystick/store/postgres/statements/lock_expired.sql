-- lock_expired: take hold of attempts that a sweep wants to end, and of their jobs; what anybody else holds now is left
-- to him. Returns the places in the list that are ours until this transaction ends.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
)
SELECT request.place
  FROM (SELECT * FROM request ORDER BY job_id) AS request
 CROSS JOIN LATERAL (
       SELECT 1 FROM jobs AS j WHERE j.job_id = request.job_id FOR NO KEY UPDATE SKIP LOCKED) AS j
 CROSS JOIN LATERAL (
       SELECT 1
         FROM attempts AS a
        WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
          AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
          FOR NO KEY UPDATE SKIP LOCKED) AS a
