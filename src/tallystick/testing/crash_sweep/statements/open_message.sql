-- open_message: an answer for the group, entered and stored, not yet counted down; a second call changes nothing.
INSERT INTO messages (guid, job_id, name, occurrence, kind, ledger, created_at)
VALUES (?2, ?1, 'children', 1, 'child', 10000000001, 0)
ON CONFLICT (guid) DO NOTHING
