-- schedule: one schedule.
-- takes: schedule_id text
SELECT @names(Schedule) FROM schedules WHERE schedule_id = :schedule_id
