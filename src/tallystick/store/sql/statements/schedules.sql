-- schedules: a page of the schedules by their names.
-- takes: after text, limit int
SELECT @names(Schedule)
  FROM schedules
 WHERE schedule_id > :after
 ORDER BY schedule_id
 LIMIT :limit
