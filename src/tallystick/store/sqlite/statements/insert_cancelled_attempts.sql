-- insert_cancelled_attempts: the attempt that was never made: leased and aborted in one move, so that the view can be derived.
-- takes: InsertAttempt, at
-- row: (@values(InsertAttempt), 'cancel', 'cancel', '', 0, :at, :at)
INSERT INTO attempts (
  @names(InsertAttempt), lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, finished_at
)
VALUES @rows
