-- own_xid_and_notify: what `own_xid_and_schema` gives; and wake the listeners on channel $1 when this transaction is durable,
-- as `notify` does.
SELECT @part(own_number), (SELECT coalesce(max(version), 0) FROM tallystick_migrations), pg_notify($1, '')
