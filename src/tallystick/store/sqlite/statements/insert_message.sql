-- insert_message: a message arrives for a job. A failure of the key: it was delivered before.
INSERT INTO messages (
  guid, job_id, dimension, name, occurrence, kind, payload, due_at, ledger, redeliveries, created_at, arrived, acked_at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
