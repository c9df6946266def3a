-- A person names an effect by its key, whatever became of its job. A refusal may keep its key; what has ended may go after a time.
ALTER TABLE effect_keys ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
DROP INDEX effect_keys_occupied;
CREATE UNIQUE INDEX effect_keys_occupied ON effect_keys (tenant_id, effect, key)
WHERE outcome IS NULL OR outcome = 'HAPPENED' OR kept = 1;
CREATE INDEX effect_keys_open ON effect_keys (tenant_id, key) WHERE outcome IS NULL;
CREATE INDEX effect_keys_ended ON effect_keys (ended_at) WHERE ended_at IS NOT NULL;
