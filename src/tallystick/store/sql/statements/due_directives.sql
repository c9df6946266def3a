-- due_directives: directives that a relay may take now, the longest due first.
-- takes: now int, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'PENDING' AND next_try_at <= :now AND via <> 'pull'
 ORDER BY next_try_at
 LIMIT :limit
