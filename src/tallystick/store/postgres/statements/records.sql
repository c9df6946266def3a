-- records: the recorded steps of the current dimension of the listed jobs, job by job in the order of happening.
SELECT r ->> 0, s.*
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT @names(Record)
         FROM steps
        WHERE job_id = r ->> 0 AND dimension = (r ->> 1)::bigint AND n IS NOT NULL
        ORDER BY n) AS s
