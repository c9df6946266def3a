-- insert_effect_attempts: the attempt at an effect, with the right to act from the first.
-- takes: job_id, unit, attempt, status, guid, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
INSERT INTO attempts (@takes)
VALUES (
  :job_id, :unit, :attempt, :status, :guid, :lease_id, :lease_owner, :lease_epoch, :lease_expires_at, :started_at
)
