-- insert_cancelled_attempts: attempts that were never made: leased and aborted in one move, so that the view can be derived.
-- takes: list jsonb, at int
INSERT INTO attempts (
  @names(InsertAttempt), lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, finished_at
)
SELECT @read(InsertAttempt, r), 'cancel', 'cancel', '', 0, :at, :at FROM jsonb_array_elements(:list) AS r
