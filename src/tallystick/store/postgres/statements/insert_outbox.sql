-- insert_outbox: directives begin their way; an identifier follows from its attempt, so a second one is refused.
-- takes: list jsonb
INSERT INTO outbox (@names(OutboxRow), updated_at)
SELECT @fields(OutboxRow), created_at FROM (SELECT @read(OutboxRow, r) FROM jsonb_array_elements(:list) AS r) AS listed
