-- records: the recorded steps of the current dimension of the listed jobs, job by job in the order of happening, and behind them
-- what is open there and has no place in the chain yet.
SELECT r ->> 0, s.*
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT n IS NULL, @names(Record)
         FROM steps
        WHERE job_id = r ->> 0 AND dimension = (r ->> 1)::bigint AND (n IS NOT NULL OR completed_at IS NULL)
        ORDER BY n) AS s
