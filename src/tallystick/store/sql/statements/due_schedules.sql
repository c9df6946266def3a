-- due_schedules: the schedules whose time has come, the longest due first.
-- takes: now int, limit int
SELECT @names(Schedule)
  FROM schedules
 WHERE due_at <= :now
 ORDER BY due_at
 LIMIT :limit
