-- insert_child_end: the message of a child that has ended, with all its digits, acknowledged: nobody has to read it.
-- A failure of the key is a second ending of the same child.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, created_at, acked_at, ledger)
VALUES (?1, ?2, ?3, ?4, ?5, 'child', ?6, ?7, ?7, ?8)
