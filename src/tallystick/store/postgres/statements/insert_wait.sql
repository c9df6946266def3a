-- insert_wait: a wait opens, its leg 1 complete: ledger 001100000000000. Runs under the fence, with the job's row in hand.
INSERT INTO steps (job_id, dimension, name, occurrence, kind, state, ledger, attempt, created_at)
VALUES ($1, $2, $3, $4, $5, 'IN_PROGRESS', 1100000000000, $6, $7)
