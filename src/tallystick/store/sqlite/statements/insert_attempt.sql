-- insert_attempt: a claim opens an attempt, leased and started in one move.
-- A constraint failure means that another attempt of this job is live: two claims can never both succeed.
-- takes: job_id, attempt, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, guid
-- row: (:job_id, :attempt, :lease_id, :lease_owner, :lease_epoch, :lease_expires_at, :started_at, :guid, 'IN_PROGRESS')
INSERT OR FAIL INTO attempts (@takes, status) VALUES @rows
