-- copy_steps: the listed records of one dimension of a job (?2, ?3) become records of a new one (?1), each at its place in
-- the new chain and with its origin: the row that was written when it happened. A copy belongs to no attempt, and asks for nothing.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, state, ledger, n, attempt, created_at, completed_at, result, error, notes,
  prev_hash, event_hash, semaphore, threshold, failed, payload, origin_job_id, origin_dimension
)
SELECT ?1, 0, s.name, s.occurrence, s.kind, s.state, s.ledger, copy.value ->> 2, 0, ?5, ?5, s.result, s.error, s.notes,
       unhex(copy.value ->> 3), unhex(copy.value ->> 4), s.semaphore, s.threshold, s.failed,
       CASE WHEN s.kind <> 'remote' THEN s.payload END, coalesce(s.origin_job_id, s.job_id), coalesce(s.origin_dimension, s.dimension)
  FROM json_each(?4) AS copy CROSS JOIN steps AS s
 WHERE s.job_id = ?2 AND s.dimension = ?3 AND s.name = copy.value ->> 0 AND s.occurrence = copy.value ->> 1
   AND s.n IS NOT NULL
