-- acknowledge_losers: the timer that lost the race for a wait is acknowledged without effect.
UPDATE messages
   SET acked_at = $6
 WHERE job_id = $1 AND kind = 'timer' AND dimension = $2 AND name = $3 AND occurrence = $4 AND guid <> $5
   AND acked_at IS NULL
