-- ended: how many jobs workers have ended since a minute, by minute and state.
-- takes: minute int
SELECT minute, state, CAST(sum(ended) AS BIGINT)
  FROM ended_by_minute
 WHERE minute >= :minute
 GROUP BY minute, state
 ORDER BY minute, state
