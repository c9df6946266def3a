-- held_schedules: how many schedules are held until a person has decided, counted up to a number.
-- takes: at_most int
SELECT count(*) FROM (SELECT 1 FROM schedules WHERE hold_reason IS NOT NULL LIMIT :at_most) AS held
