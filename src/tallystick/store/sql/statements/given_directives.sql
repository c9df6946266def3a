-- given_directives: directives that this remote worker was given and has not acknowledged, while there is time for that.
-- takes: worker text, now int, limit int
SELECT @names(OutboxRow, o)
  FROM outbox AS o
  JOIN steps AS s ON s.job_id = o.job_id AND s.completed_at IS NULL AND @part(step_id, s) = o.step_id
 WHERE o.taken_by = :worker AND o.state = 'SENT' AND s.state = 'AWAITING_ACK' AND s.attempt_no = o.attempt_no
   AND s.lease_expires_at > :now
 ORDER BY o.sent_at
 LIMIT :limit
