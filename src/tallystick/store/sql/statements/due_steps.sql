-- due_steps: remote steps that need the sweep, the longest over first; of protocol jobs without a place, as they have one that is
-- active. What a relay still has to publish is the relay's, unless its job was asked to end. What waits for a directive of a protocol
-- job that is held is not due, and nothing is that no remote worker can be given because its job is held.
-- takes: now int, limit int
SELECT s.job_id, CASE WHEN s.kind <> 'protocol' THEN s.dimension END, s.name, s.occurrence
  FROM steps AS s
 WHERE s.lease_expires_at IS NOT NULL AND s.lease_expires_at <= :now
   AND (s.state <> 'DISPATCHING'
        OR EXISTS (SELECT 1
                     FROM outbox AS o
                    WHERE o.job_id = s.job_id AND o.state = 'PENDING' AND o.via = 'pull' AND o.step_id = @part(step_id, s))
        OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = s.job_id AND j.state = 'CANCELLING'))
   AND NOT ((s.state = 'DISPATCHING' OR (s.kind = 'protocol' AND s.state IN ('PENDING', 'FAILED_RETRY')))
            AND EXISTS (SELECT 1 FROM jobs AS h WHERE h.job_id = s.job_id AND h.hold IS NOT NULL))
 ORDER BY s.lease_expires_at
 LIMIT :limit
