-- close_child: step 3 of the child that closed the group, with the wake-up of its parent; and every child's acknowledgement.
UPDATE messages
   SET ledger = ledger + CASE WHEN ledger / 100000000000 % 10 = 1 THEN 100000000 ELSE 0 END, acked_at = $3
 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL AND ledger / 1000000000 % 10 = 1
