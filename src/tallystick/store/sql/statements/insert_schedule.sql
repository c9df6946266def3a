-- insert_schedule: a schedule, new or in the place of the one that `drop_schedule` has just removed. No row: there is one.
-- takes: Schedule
INSERT INTO schedules (@names(Schedule)) VALUES (@values(Schedule)) ON CONFLICT (schedule_id) DO NOTHING
