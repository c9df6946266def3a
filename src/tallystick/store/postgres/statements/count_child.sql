-- count_child: a child has ended: it enters its group, its message has all its digits, the semaphore falls; returns
-- whether it closed the group, and what the group makes of a failure.
-- No row: the group was closed without it. A failure of the CHECK is an underflow, of the key a second ending.
WITH counted AS (
  UPDATE steps
     SET ledger = ledger + 1 + CASE WHEN ledger / 10000000000 % 10 = 0 THEN 10000000000 ELSE 0 END
                + CASE WHEN ledger / 1000000000 % 10 = 0 THEN 1000000000 ELSE 0 END,
         semaphore = semaphore - 1,
         failed = failed + $7::bigint,
         rev = rev + 1
   WHERE job_id = $2 AND dimension = $3 AND name = $4 AND occurrence = $5 AND kind = 'group' AND state = 'IN_PROGRESS'
  RETURNING ledger % 100000000 AS entry, semaphore = threshold AS hit, payload AS mode
), told AS (
  INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, created_at, acked_at, ledger)
  SELECT $1::text, $2, $3, $4, $5, 'child', $6::text, $8::bigint, $8::bigint,
         counted.entry + 11000000000 + CASE WHEN counted.hit THEN 100100000000 ELSE 0 END
    FROM counted
)
SELECT $1::text, counted.hit, counted.mode FROM counted
