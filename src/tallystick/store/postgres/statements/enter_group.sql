-- enter_group: count a child's entry of leg 2 and set the saturating marker of step 1; a failed child is counted too.
UPDATE steps
   SET ledger = ledger + 1 + CASE WHEN ledger / 10000000000 % 10 = 0 THEN 10000000000 ELSE 0 END, failed = failed + $5, rev = rev + 1
 WHERE job_id = $1 AND dimension = $2 AND name = $3 AND occurrence = $4 AND kind = 'group' AND state = 'IN_PROGRESS'
RETURNING ledger % 100000000, threshold, payload
