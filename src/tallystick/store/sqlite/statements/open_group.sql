-- open_group: how a group stands in which children end: its digits, its semaphore, its threshold, and what it makes of a failure.
-- No row: the group was closed without them.
SELECT ledger, semaphore, threshold, payload
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND kind = 'group' AND state = 'IN_PROGRESS'
