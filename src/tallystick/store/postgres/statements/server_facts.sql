-- server_facts: is this server a replica, which server is it (its timeline and since when it runs), what is its own search
-- path, and how does this database encode its texts.
SELECT pg_is_in_recovery(),
       CASE WHEN pg_is_in_recovery() THEN ''
            ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' ' || extract(epoch FROM pg_postmaster_start_time())
       END,
       (SELECT reset_val FROM pg_settings WHERE name = 'search_path'),
       current_setting('server_encoding')
