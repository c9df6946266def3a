-- acknowledge: a message is done with; it is kept, which is what makes its redelivery harmless.
UPDATE messages SET acked_at = $3 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL
