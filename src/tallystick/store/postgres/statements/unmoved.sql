-- unmoved: the places in the list whose chain still ends where the sweep read its end. A holder may have written
-- between that reading and the end of its lease; then the sweep reads again, later.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 3)::bigint AS n
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
)
SELECT place
  FROM request
 WHERE (SELECT count(*) FROM steps WHERE steps.job_id = request.job_id AND steps.n > request.n) = 0
   AND (SELECT count(*) FROM events WHERE events.job_id = request.job_id AND events.n > request.n) = 0
