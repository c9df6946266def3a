-- acknowledge: a message whose step 2 is durable is done with; it is kept, which is what makes its redelivery harmless.
-- No row changed: it is acknowledged already, or something of it is still to do.
UPDATE messages
   SET acked_at = $3
 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL AND ledger / 1000000000 % 10 = 1
