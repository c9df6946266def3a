-- open_group: an activity that waits for so many messages; a second call changes nothing.
INSERT INTO steps (job_id, name, kind, state, ledger, created_at, semaphore, threshold)
VALUES (%s, 'children', 'group', 'IN_PROGRESS', 1100000000000, 0, %s, 0)
ON CONFLICT (job_id, dimension, name, occurrence) DO NOTHING
