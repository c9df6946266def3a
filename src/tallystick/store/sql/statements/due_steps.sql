-- due_steps: protocol jobs whose active step needs the sweep, the longest over first. What a relay still has to publish is the
-- relay's, unless its job was asked to end.
-- takes: now int, limit int
SELECT s.job_id
  FROM steps AS s
 WHERE s.lease_expires_at IS NOT NULL AND s.lease_expires_at <= :now AND s.kind = 'protocol'
   AND (s.state <> 'DISPATCHING'
        OR EXISTS (SELECT 1 FROM outbox AS o WHERE o.job_id = s.job_id AND o.state = 'PENDING' AND o.via = 'pull')
        OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = s.job_id AND j.state = 'CANCELLING'))
 ORDER BY s.lease_expires_at
 LIMIT :limit
