-- drop_schedule: remove a schedule that was seen. No row: it was changed meanwhile.
-- takes: schedule_id text, seen int
DELETE FROM schedules WHERE schedule_id = :schedule_id AND rev = :seen
