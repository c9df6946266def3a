-- outbox_lag: for each service and way how many directives are not out, since when the first of them could have been, and how many
-- could not be published; of one tenant, if it is named.
-- takes: withdrawn text, tenant_id text
SELECT service, via, sum(waits), min(since), sum(dead)
  FROM (SELECT tenant_id, service, via, 1 AS waits, next_try_at AS since, 0 AS dead
          FROM outbox
         WHERE state = 'PENDING' AND via = 'pull'
        UNION ALL
        SELECT tenant_id, service, via, 1, next_try_at, 0 FROM outbox WHERE state = 'PENDING' AND via <> 'pull'
        UNION ALL
        SELECT tenant_id, service, via, 0, NULL, 1
          FROM outbox
         WHERE state = 'FAILED_FINAL' AND reason <> :withdrawn) AS counted
 WHERE :tenant_id IS NULL OR tenant_id = :tenant_id
 GROUP BY service, via
 ORDER BY service, via
