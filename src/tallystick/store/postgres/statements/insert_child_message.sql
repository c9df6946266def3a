-- insert_child_message: a child has ended; its message enters the group and its work, the outcome, is durable with it.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, created_at, ledger)
VALUES ($1, $2, $3, $4, $5, 'child', $6, $7, $8::bigint + 10000000000)
ON CONFLICT (guid) DO NOTHING
