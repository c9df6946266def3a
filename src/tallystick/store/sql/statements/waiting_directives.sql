-- waiting_directives: a page of directives that are not out, in the order of their identifiers; of one tenant and for one service, if
-- these are named.
-- takes: tenant_id text, service text, after text, limit int
SELECT @names(OutboxRow)
  FROM (SELECT * FROM outbox WHERE state = 'PENDING' AND via = 'pull'
        UNION ALL
        SELECT * FROM outbox WHERE state = 'PENDING' AND via <> 'pull') AS waiting
 WHERE outbox_id > :after AND (:tenant_id IS NULL OR tenant_id = :tenant_id) AND (:service IS NULL OR service = :service)
 ORDER BY outbox_id
 LIMIT :limit
