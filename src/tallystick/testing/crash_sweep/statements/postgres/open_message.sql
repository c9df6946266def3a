-- open_message: an answer for the group, entered and stored, not yet counted down; a second call changes nothing.
INSERT INTO messages (job_id, guid, name, occurrence, kind, ledger, created_at)
VALUES (%s, %s, 'children', 1, 'child', 10000000001, 0)
ON CONFLICT (guid) DO NOTHING
