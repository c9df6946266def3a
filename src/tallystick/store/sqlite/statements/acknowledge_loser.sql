-- acknowledge_loser: the timer that lost the race for a wait is acknowledged without effect.
-- No row changed: the wait has no timer.
UPDATE messages
   SET acked_at = ?3
 WHERE guid = ?1 AND job_id = ?2 AND kind = 'timer' AND acked_at IS NULL AND ledger / 10000000000 % 10 = 0
