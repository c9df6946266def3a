-- own_xid_and_notify: the number of this transaction, as `own_xid` gives it; and wake whoever listens on channel $1 when it
-- is durable, as `notify` does.
SELECT pg_current_xact_id_if_assigned()::text, pg_notify($1, '')
