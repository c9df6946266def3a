-- health: what people want to know about the server, the size of the books, and the transaction that keeps vacuum from
-- the oldest rows: for how many seconds, and whose it is.
SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
       (SELECT max(version) FROM tallystick_migrations),
       (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
          FROM pg_class AS c
         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
       coalesce(oldest.seconds, 0), oldest.who
  FROM (SELECT) AS always
  LEFT JOIN LATERAL (
       SELECT floor(extract(EPOCH FROM clock_timestamp() - xact_start))::bigint AS seconds,
              concat_ws(', ', 'pid ' || pid, nullif(application_name, ''), usename, state) AS who
         FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND coalesce(backend_xmin, backend_xid) IS NOT NULL
        ORDER BY greatest(age(backend_xmin), age(backend_xid)) DESC
        LIMIT 1) AS oldest ON true
