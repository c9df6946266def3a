-- insert_attempt: a claim opens an attempt, leased and started in one move.
-- A constraint failure means that another attempt of this job is live: two claims can never both succeed.
INSERT OR FAIL INTO attempts (
  job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, guid
)
VALUES (?1, ?2, 'IN_PROGRESS', ?3, ?4, ?5, ?6, ?7, ?8)
