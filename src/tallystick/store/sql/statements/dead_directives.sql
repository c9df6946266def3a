-- dead_directives: a page of directives that could not be published, in the order of their identifiers; of one tenant and for one
-- service, if these are named. What was taken back with its job is none of them.
-- takes: withdrawn text, tenant_id text, service text, after text, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'FAILED_FINAL' AND reason <> :withdrawn AND outbox_id > :after
   AND (:tenant_id IS NULL OR tenant_id = :tenant_id) AND (:service IS NULL OR service = :service)
 ORDER BY outbox_id
 LIMIT :limit
