-- insert_cancelled_attempt: the attempt that was never made: leased and aborted in one move, so that the view can be derived.
INSERT INTO attempts (
  job_id, attempt, status, reason, guid, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, finished_at
)
VALUES (?1, ?2, ?3, ?4, ?5, 'cancel', 'cancel', '', 0, ?6, ?6)
