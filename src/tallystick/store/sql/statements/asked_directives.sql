-- asked_directives: directives for a service that a remote worker may be given, the oldest first; of one tenant, if it is named.
-- takes: service text, tenant_id text, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'PENDING' AND via = 'pull' AND service = :service AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
   AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = outbox.job_id AND j.hold IS NOT NULL)
 ORDER BY next_try_at
 LIMIT :limit
