-- picture_remote: remote steps of workflows by their places ($1, a list), be they open or not.
SELECT s.job_id, s.dimension, s.name, s.occurrence, @names(RemoteStep, s)
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = r ->> 0 AND steps.dimension = (r ->> 1)::bigint AND steps.name = r ->> 2
          AND steps.occurrence = (r ->> 3)::bigint AND steps.kind = 'remote'
       OFFSET 0) AS s
