-- given_directives: directives that this remote worker was given and has not acknowledged, while there is time for that.
-- The few steps that await an ACK come first, by their index: what a worker was given in its life is not read.
-- takes: worker text, now int, limit int
SELECT @names(OutboxRow, o)
  FROM steps AS s
  JOIN outbox AS o ON o.job_id = s.job_id AND o.step_id = @part(step_id, s) AND o.attempt_no = s.attempt_no
 WHERE s.state = 'AWAITING_ACK' AND s.lease_expires_at > :now AND o.state = 'SENT' AND o.taken_by = :worker
 ORDER BY o.sent_at
 LIMIT :limit
