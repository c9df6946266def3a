-- insert_woken_attempts: the attempts at jobs that messages have woken, each with its message; part of their claim.
-- takes: jobs text[], attempts bigint[], leases text[], guids text[], owner text, lease_ms int, epoch text, lease_now int,
--   wall_now int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
)
INSERT INTO attempts (job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at, guid)
SELECT job_id, attempt, 'IN_PROGRESS', lease_id, :owner, :epoch, clock.now + :lease_ms, clock.wall, guid
  FROM unnest(:jobs, :attempts, :leases, :guids) AS woken (job_id, attempt, lease_id, guid)
 CROSS JOIN clock
