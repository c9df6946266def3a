-- all_acts: a page of what people did to jobs, to queues or to schedules, the newest first.
-- takes: about text, before int, limit int
SELECT @names(Act) FROM acts WHERE about = :about AND seq < :before AND who <> '' ORDER BY seq DESC LIMIT :limit
