-- due_directives: directives for one endpoint that a relay may take now, the longest due first.
-- takes: via text, now int, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'PENDING' AND via <> 'pull' AND via = :via AND next_try_at <= :now
 ORDER BY next_try_at
 LIMIT :limit
