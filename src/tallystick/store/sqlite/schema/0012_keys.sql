-- Keys of clients over HTTP: the secret is kept as its hash alone. Scopes and services are JSON lists.
CREATE TABLE api_keys (
  kid         TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  scopes      TEXT NOT NULL,
  services    TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER,
  revoked_at  INTEGER
) STRICT, WITHOUT ROWID;
