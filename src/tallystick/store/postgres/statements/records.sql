-- records: the recorded steps of the current dimension of the listed jobs, job by job in the order of happening.
SELECT s.job_id, s.name, s.occurrence, s.kind, s.state, s.n, s.result, s.error, s.notes
  FROM jsonb_array_elements($1::jsonb) AS r
  JOIN steps AS s ON s.job_id = r ->> 0 AND s.dimension = (r ->> 1)::bigint
 WHERE s.n IS NOT NULL
 ORDER BY s.job_id, s.n
