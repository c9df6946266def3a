-- insert_cancelled_attempts: the attempt that was never made: leased and aborted in one move, so that the view can be derived.
-- takes: job_id, attempt, status, reason, guid, at
INSERT INTO attempts (
  job_id, attempt, status, reason, guid, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, finished_at
)
VALUES (:job_id, :attempt, :status, :reason, :guid, 'cancel', 'cancel', '', 0, :at, :at)
