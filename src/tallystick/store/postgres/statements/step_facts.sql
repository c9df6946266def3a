-- step_facts: the steps of a job that follow fact $2, at most $3 (-1: all); each row is its own event, of the moment at
-- which it ended.
SELECT n, kind, completed_at, attempt, name, occurrence, state, ledger, result, error, notes, prev_hash, event_hash
  FROM steps
 WHERE job_id = $1 AND n > $2
 ORDER BY n
 LIMIT nullif($3::bigint, -1)
