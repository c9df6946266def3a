-- own_number: the number of this transaction, by which its fate can be asked for later, null when it has written nothing; and
-- which server this is, as `server_facts` says it: behind a pooler it may be another one than a moment ago.
pg_current_xact_id_if_assigned()::text,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' ' || extract(epoch FROM pg_postmaster_start_time())
