-- copy_steps: the listed records of one dimension of a job ($2, $3) become records of a new one ($1), each at its place in
-- the new chain and with its origin: the row that was written when it happened. A copy belongs to no attempt, and asks for nothing.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, state, ledger, n, attempt, created_at, completed_at, result, error, notes,
  prev_hash, event_hash, semaphore, threshold, failed, payload, origin_job_id, origin_dimension
)
SELECT $1, 0, s.name, s.occurrence, s.kind, s.state, s.ledger, (copy ->> 2)::bigint, 0, $5::bigint, $5::bigint, s.result,
       s.error, s.notes, decode(copy ->> 3, 'hex'), decode(copy ->> 4, 'hex'), s.semaphore, s.threshold, s.failed,
       CASE WHEN s.kind <> 'remote' THEN s.payload END, coalesce(s.origin_job_id, s.job_id),
       coalesce(s.origin_dimension, s.dimension)
  FROM jsonb_array_elements($4::jsonb) AS copy
  JOIN steps AS s
    ON s.job_id = $2 AND s.dimension = $3::bigint AND s.name = copy ->> 0 AND s.occurrence = (copy ->> 1)::bigint
 WHERE s.n IS NOT NULL
