-- health: what people want to know about the server, the size of the books, and the oldest open transaction
-- with whose it is.
SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
       (SELECT max(version) FROM tallystick_migrations),
       (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
          FROM pg_class AS c
         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
       coalesce(oldest.seconds, 0), oldest.who
  FROM (SELECT) AS always
  LEFT JOIN LATERAL (
       SELECT extract(EPOCH FROM clock_timestamp() - xact_start)::bigint AS seconds,
              concat_ws(', ', 'pid ' || pid, nullif(application_name, ''), usename, state) AS who
         FROM pg_stat_activity
        WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
        ORDER BY xact_start
        LIMIT 1) AS oldest ON true
