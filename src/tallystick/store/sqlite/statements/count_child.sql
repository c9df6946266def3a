-- count_child: a child has ended: it enters its group, its message has all its digits, the semaphore falls; returns
-- whether it closed the group, and what the group makes of a failure.
-- No row: the group was closed without it. A failure of the CHECK is an underflow, of the key a second ending.
INSERT INTO child_ends (guid, job_id, dimension, name, occurrence, state, failed, at, entry, hit, mode)
SELECT ?1, job_id, dimension, name, occurrence, ?6, ?7, ?8, ledger % 100000000 + 1, semaphore - 1 = threshold, payload
  FROM steps
 WHERE job_id = ?2 AND dimension = ?3 AND name = ?4 AND occurrence = ?5 AND kind = 'group' AND state = 'IN_PROGRESS'
RETURNING guid, hit, mode
