-- own_xid_and_notify: the number of this transaction and its server, as `own_xid` gives them; and wake the listeners on
-- channel $1 when it is durable, as `notify` does.
SELECT pg_current_xact_id_if_assigned()::text,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' ' || extract(epoch FROM pg_postmaster_start_time()),
       pg_notify($1, '')
