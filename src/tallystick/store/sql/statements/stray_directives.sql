-- stray_directives: directives for none of these endpoints that were due before an instant, and that no relay has taken.
-- takes: known list, before int, limit int
SELECT @names(OutboxRow)
  FROM outbox
 WHERE state = 'PENDING' AND via <> 'pull' AND NOT (via IN :known) AND next_try_at <= :before
   AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = outbox.job_id AND j.hold IS NOT NULL)
 ORDER BY next_try_at
 LIMIT :limit
