-- Effects of a tenant that have ended are listed page by page, the last one first.
CREATE INDEX effect_keys_ended_of ON effect_keys (tenant_id, ended_at, exec_id) WHERE ended_at IS NOT NULL;
