-- insert_event: append a fact. Its place in the chain is its key, so a second author of the same place fails.
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
