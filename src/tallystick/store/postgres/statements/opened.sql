-- opened: what is open in the current dimension of the listed jobs, in no order.
SELECT r ->> 0, s.*
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT @names(Opened)
         FROM steps
        WHERE job_id = r ->> 0 AND dimension = (r ->> 1)::bigint AND completed_at IS NULL
       OFFSET 0) AS s
