-- acts: a page of what people did to one job, queue or schedule, the newest first.
-- takes: about text, name text, before int, limit int
SELECT @names(Act)
  FROM acts
 WHERE about = :about AND name = :name AND seq < :before AND who <> ''
 ORDER BY seq DESC
 LIMIT :limit
