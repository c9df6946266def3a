-- claim_job: take a due job; its start message is entered the first time and redelivered from then on.
-- No row changed: somebody else took it, or it is held.
UPDATE jobs
   SET state = CASE state WHEN 'CANCELLING' THEN 'CANCELLING' ELSE 'IN_PROGRESS' END,
       attempt = attempt + 1,
       attempts_total = attempts_total + 1,
       ready_at = NULL,
       start_redeliveries = start_redeliveries + (start_ledger > 0 AND start_acked_at IS NULL),
       start_ledger = start_ledger + (start_ledger = 0),
       head_n = ?3,
       head_hash = ?4,
       updated_at = ?5,
       rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND ready_at IS NOT NULL AND hold IS NULL
   AND (state = 'QUEUED' OR state = 'IN_PROGRESS' OR state = 'CANCELLING')
