-- A relay asks for what is due by endpoint, so that none hides behind another; what is pulled is not in its way.
DROP INDEX outbox_to_publish;
CREATE INDEX outbox_to_publish ON outbox (via, next_try_at) WHERE state = 'PENDING' AND via <> 'pull';
