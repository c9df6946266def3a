-- What a remote worker was given and has not acknowledged is found by the steps that await their ACK: these are few. The index by
-- worker held everything that a worker was ever given.
DROP INDEX outbox_taken;
CREATE INDEX steps_awaiting_ack ON steps (state) WHERE state = 'AWAITING_ACK';
