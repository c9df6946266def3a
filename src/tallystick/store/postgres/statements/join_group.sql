-- join_group: the parent takes a closed group: all its digits, its place in the chain. No row: it is not closed yet.
UPDATE steps
   SET state = 'SUCCEEDED', ledger = $11, result = $5, attempt = $6,
       completed_at = $7, n = $8, prev_hash = $9, event_hash = $10, rev = rev + 1
 WHERE job_id = $1 AND dimension = $2 AND name = $3 AND occurrence = $4 AND kind = 'group' AND state = 'IN_PROGRESS'
   AND (semaphore <= threshold OR (failed > 0 AND payload = 'fail_fast'))
