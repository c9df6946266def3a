-- directive: one directive, by its identifier.
-- takes: outbox_id text
SELECT @names(OutboxRow) FROM outbox WHERE outbox_id = :outbox_id
