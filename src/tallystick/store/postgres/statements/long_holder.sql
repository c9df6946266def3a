-- long_holder: the transaction that has written to the books and stayed open longest: for how many milliseconds, and whose
-- it is.
SELECT floor(extract(EPOCH FROM clock_timestamp() - activity.xact_start) * 1000)::bigint,
       concat_ws(', ', 'pid ' || activity.pid, nullif(activity.application_name, ''), activity.usename, activity.state)
  FROM pg_locks AS held
  JOIN pg_stat_activity AS activity USING (pid)
  JOIN pg_class AS c ON c.oid = held.relation
 WHERE held.locktype = 'relation' AND held.granted AND held.mode = 'RowExclusiveLock'
   AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND c.relnamespace = current_schema()::regnamespace AND activity.xact_start IS NOT NULL
 ORDER BY activity.xact_start
 LIMIT 1
