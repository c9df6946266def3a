-- insert_effects: effects begin, and take their keys; the attempts at them have the right to act from the first.
-- A constraint failure means that another has a key: two intents can never both succeed.
-- takes: list jsonb, epoch text, lease_now int, wall int
-- each: EffectRow, lease_owner text, lease_ms bigint
WITH listed AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), begun AS (
  INSERT INTO effect_keys (@names(EffectRow)) SELECT @fields(EffectRow) FROM listed RETURNING exec_id
)
INSERT INTO attempts (
  job_id, unit, attempt, status, guid, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
)
SELECT job_id, unit, attempt, state, listed.exec_id, lease_id, lease_owner, :epoch, store_ms(:lease_now) + lease_ms, :wall
  FROM listed
  JOIN begun ON begun.exec_id = listed.exec_id
