-- insert_outbox: a directive begins its way; its identifier follows from its attempt, so a second one is refused.
-- takes: OutboxRow
INSERT INTO outbox (@names(OutboxRow), updated_at) VALUES (@values(OutboxRow), :created_at)
