-- insert_group: a group of children opens: leg 1 complete, one obligation a child, one threshold.
-- No row: it is open already, and a crash came between two of its bundles.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, state, ledger, attempt, created_at, semaphore, threshold, failed, payload
)
VALUES ($1, $2, $3, $4, 'group', 'IN_PROGRESS', 1100000000000, $5, $6, $7, $8, 0, $9)
ON CONFLICT (job_id, dimension, name, occurrence) DO NOTHING
