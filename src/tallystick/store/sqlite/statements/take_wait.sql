-- take_wait: an open wait gets the message that drove the claim, under the fence: all its digits, its place in the chain.
-- No row: it is not open, or this lease is no longer the live one. Reads attempts, writes steps.
UPDATE steps
   SET state = 'SUCCEEDED', ledger = 1111000000001, result = ?5, attempt = ?6, completed_at = ?7,
       n = ?8, prev_hash = ?9, event_hash = ?10, rev = rev + 1
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4
   AND state = 'IN_PROGRESS' AND ledger / 100000000000 % 10 = 1
   AND EXISTS (SELECT 1
                 FROM attempts AS live
                WHERE live.job_id = ?1 AND live.unit = '' AND live.attempt = ?6 AND live.lease_id = ?11
                  AND live.status = 'IN_PROGRESS' AND live.lease_epoch = ?12 AND live.lease_expires_at > ?13)
