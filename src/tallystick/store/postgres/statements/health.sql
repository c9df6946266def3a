-- health: what people want to know about the server, the size of the books, and the oldest open transaction.
SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
       (SELECT max(version) FROM tallystick_migrations),
       (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
          FROM pg_class AS c
         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
       (SELECT coalesce(extract(EPOCH FROM max(clock_timestamp() - xact_start)), 0)::bigint
          FROM pg_stat_activity
         WHERE datname = current_database())
