-- insert_woken_attempts: the attempts at jobs that messages have woken, each with its message, since the instant of its
-- claim, which it is a part of.
-- takes: jobs text[], attempts bigint[], leases text[], guids text[], begun bigint[], owner text, lease_ms int, epoch text,
--   lease_now int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now
)
INSERT INTO attempts (job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, guid)
SELECT job_id, attempt, 'IN_PROGRESS', lease_id, :owner, :epoch, clock.now + :lease_ms, begun, guid
  FROM unnest(:jobs, :attempts, :leases, :guids, :begun) AS woken (job_id, attempt, lease_id, guid, begun)
 CROSS JOIN clock
