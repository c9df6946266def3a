-- Keys of clients over HTTP: the secret is kept as its hash alone. Scopes and services are JSON lists.
CREATE TABLE api_keys (
  kid         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  tenant_id   TEXT COLLATE "C" NOT NULL,
  scopes      TEXT NOT NULL,
  services    TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT,
  revoked_at  BIGINT
);
