-- enter_wait: count the entry of leg 2 on the wait that a driving message answers, unless it was counted before.
UPDATE steps
   SET ledger = ledger + 1, rev = rev + 1
 WHERE job_id = ?1 AND state = 'IN_PROGRESS' AND ledger = 1100000000000
   AND (name, dimension) IN (SELECT name, ?3 FROM messages WHERE guid = ?2)
