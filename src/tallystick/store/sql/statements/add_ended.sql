-- add_ended: a worker has ended so many jobs more in a minute.
-- takes: minute int, owner text, state text, ended int
INSERT INTO ended_by_minute AS kept (minute, owner, state, ended)
VALUES (:minute, :owner, :state, :ended)
    ON CONFLICT (minute, owner, state) DO UPDATE SET ended = kept.ended + excluded.ended
