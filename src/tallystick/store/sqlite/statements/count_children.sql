-- count_children: several children of a group have ended: their entries are counted, and the semaphore falls by as many.
-- Each of them has its own message, with its own ordinal and hit, written just before.
-- No row changed: the group is not as it was read. A failure of the CHECK is an underflow.
UPDATE steps
   SET ledger = ledger + ?7 + 10000000000 * (ledger / 10000000000 % 10 = 0) + 1000000000 * (ledger / 1000000000 % 10 = 0),
       semaphore = semaphore - ?7,
       failed = failed + ?8,
       rev = rev + ?7
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND kind = 'group' AND state = 'IN_PROGRESS'
   AND ledger = ?5 AND semaphore = ?6
