-- insert_cancelled_attempts: attempts that were never made: leased and aborted in one move, so that the view can be derived.
INSERT INTO attempts (
  job_id, attempt, status, reason, guid, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, finished_at
)
SELECT job_id, attempt, status, reason, guid, 'cancel', 'cancel', '', 0, at, at
  FROM jsonb_to_recordset($1::jsonb) AS listed (
    job_id text, attempt bigint, status text, reason text, guid text, at bigint)
