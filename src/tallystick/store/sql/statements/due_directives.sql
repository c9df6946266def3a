-- due_directives: directives for one endpoint that a relay may take now, the longest due first; none of jobs that are held.
-- takes: via text, now int, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'PENDING' AND via <> 'pull' AND via = :via AND next_try_at <= :now
   AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = outbox.job_id AND j.hold IS NOT NULL)
 ORDER BY next_try_at
 LIMIT :limit
