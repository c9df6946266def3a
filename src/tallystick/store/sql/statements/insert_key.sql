-- insert_key: an API key is made. No row changed: there is one of that name.
-- takes: kid text, tenant_id text, scopes text, services text, secret_hash text, lives_ms int, wall int
INSERT INTO api_keys (kid, tenant_id, scopes, services, secret_hash, created_at, expires_at)
VALUES (:kid, :tenant_id, :scopes, :services, :secret_hash, :wall, :wall + :lives_ms)
ON CONFLICT (kid) DO NOTHING
