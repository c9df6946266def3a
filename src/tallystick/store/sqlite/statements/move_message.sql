-- move_message: rows of messages as decisions want them, each guarded by its digits.
-- Fewer rows changed than given: one has other digits, or is acknowledged.
-- takes: Message, digits
-- row: (@values(Message), :digits)
UPDATE messages
   SET ledger = given.ledger, redeliveries = given.redeliveries, acked_at = given.acked_at, dimension = given.dimension,
       occurrence = given.occurrence
  FROM @given
 WHERE messages.guid = given.guid AND messages.job_id = given.job_id AND messages.ledger = given.digits
   AND messages.acked_at IS NULL
