-- trim_ended: counts of minutes before this one are removed.
-- takes: minute int
DELETE FROM ended_by_minute WHERE minute < :minute
