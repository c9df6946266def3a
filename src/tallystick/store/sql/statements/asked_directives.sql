-- asked_directives: directives of all tenants for a service that a remote worker may be given, the oldest first.
-- takes: service text, limit int
SELECT @names(OutboxRow)
  FROM outbox @indexed(outbox_of_service)
 WHERE state = 'PENDING' AND via = 'pull' AND service = :service
   AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = outbox.job_id AND j.hold IS NOT NULL)
 ORDER BY next_try_at
 LIMIT :limit
