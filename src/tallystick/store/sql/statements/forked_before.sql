-- forked_before: the fork of a job that was made under this key, and what it asked for. No row: there is none.
-- takes: job_id text, key text
SELECT i.job_id, i.content_hash
  FROM jobs AS j
  JOIN idempotency AS i ON i.tenant_id = j.tenant_id AND i.scope = 'key' AND i.value = :key
 WHERE j.job_id = :job_id
