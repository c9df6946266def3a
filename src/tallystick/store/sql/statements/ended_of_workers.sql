-- ended_of_workers: how many jobs each worker has ended since a minute.
-- takes: minute int
SELECT owner, CAST(sum(ended) AS BIGINT) FROM ended_by_minute WHERE minute >= :minute GROUP BY owner
