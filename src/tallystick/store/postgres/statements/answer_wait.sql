-- answer_wait: an open wait gets its answer, all its digits and its place in the chain. No row: it is not open.
UPDATE steps
   SET state = 'SUCCEEDED', ledger = 1111000000001, result = $5, notes = $6, attempt = $7, completed_at = $8,
       n = $9, prev_hash = $10, event_hash = $11, rev = rev + 1
 WHERE job_id = $1 AND dimension = $2 AND name = $3 AND occurrence = $4
   AND state = 'IN_PROGRESS' AND ledger / 100000000000 % 10 = 1
