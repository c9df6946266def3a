-- counts: how many jobs stand in each state.
SELECT state, count(*) FROM jobs GROUP BY state
