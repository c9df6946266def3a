-- unmoved: the places in the list whose chain ends where the sweep read its end. A holder may have written between that
-- reading and the end of its lease, or another server may have been read; then the sweep reads again, later.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 3)::bigint AS n, decode(r ->> 4, 'base64') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
)
SELECT place
  FROM request
 CROSS JOIN LATERAL (
       SELECT facts.n, facts.event_hash
         FROM ((SELECT n, event_hash
                  FROM steps
                 WHERE job_id = request.job_id AND n IS NOT NULL AND misplaced IS NULL
                 ORDER BY n DESC
                 LIMIT 1)
               UNION ALL
               (SELECT n, event_hash FROM events WHERE job_id = request.job_id ORDER BY n DESC LIMIT 1)) AS facts
        ORDER BY facts.n DESC
        LIMIT 1) AS newest
 WHERE newest.n = request.n AND newest.event_hash = request.event_hash
