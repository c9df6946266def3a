-- move_outbox: a directive as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
-- takes: OutboxRow, before, at
UPDATE outbox
   SET state = :state, tries = :tries, next_try_at = :next_try_at, sent_at = :sent_at, rev = :rev, taken_by = :taken_by,
       reason = :reason, updated_at = :at
 WHERE outbox_id = :outbox_id AND rev = :before AND state = 'PENDING'
