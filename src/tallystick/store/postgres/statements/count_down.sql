-- count_down: step 2 of leg-2 messages in one statement: semaphores move, messages are marked, closers get their digit.
-- Requests on one semaphore apply in the order of the list, by a running sum: a threshold that is passed is hit.
-- Returns for each place whether its semaphore moved (`sound`), whether this one hit, and whether all that should have
-- changed has (`whole`; if not, a row was changed before we had it, and the caller begins again). No row for a place: step 2 of
-- its message is done, its step 1 is not, or nothing is open here. Not sound: somewhere in the list its semaphore would
-- fall below zero; nothing of that semaphore was moved, and the caller goes through its requests one by one.
-- Messages are locked first, in the order of their guids, then jobs and groups in the order of their keys; what is
-- computed with was read under those locks. $1 the list.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS dimension, r ->> 2 AS name, (r ->> 3)::bigint AS occurrence,
         r ->> 4 AS guid, (r ->> 5)::bigint AS delta, (r ->> 6)::bigint AS threshold
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), known AS MATERIALIZED (
  SELECT request.*, m.*
    FROM (SELECT * FROM request ORDER BY guid) AS request
   CROSS JOIN LATERAL (
         SELECT m.ctid AS message_at, m.ledger
           FROM messages AS m
          WHERE m.guid = request.guid AND m.job_id = request.job_id AND m.acked_at IS NULL
            FOR NO KEY UPDATE) AS m
), able AS MATERIALIZED (
  SELECT * FROM known WHERE ledger / 10000000000 % 10 = 1 AND ledger / 1000000000 % 10 = 0
), at_job AS MATERIALIZED (
  SELECT able.*, j.*
    FROM (SELECT * FROM able WHERE name = '' ORDER BY job_id) AS able
   CROSS JOIN LATERAL (
         SELECT j.ctid AS semaphore_at, j.semaphore AS before
           FROM jobs AS j
          WHERE j.job_id = able.job_id AND j.completed_at IS NULL
            FOR NO KEY UPDATE) AS j
), at_group AS MATERIALIZED (
  SELECT able.*, s.*
    FROM (SELECT * FROM able WHERE name <> '' ORDER BY job_id, dimension, name, occurrence) AS able
   CROSS JOIN LATERAL (
         SELECT s.ctid AS semaphore_at, s.semaphore AS before
           FROM steps AS s
          WHERE s.job_id = able.job_id AND s.dimension = able.dimension AND s.name = able.name
            AND s.occurrence = able.occurrence AND s.kind = 'group' AND s.state = 'IN_PROGRESS'
            FOR NO KEY UPDATE) AS s
), summed AS (
  SELECT both_kinds.*,
         before + sum(delta) OVER (PARTITION BY job_id, dimension, name, occurrence ORDER BY place) AS after
    FROM (SELECT * FROM at_job UNION ALL SELECT * FROM at_group) AS both_kinds
), judged AS MATERIALIZED (
  SELECT summed.*,
         min(after) OVER semaphore >= 0 AS sound,
         place = max(place) OVER semaphore AS last,
         after = threshold AND delta <> 0 AS hit
    FROM summed
  WINDOW semaphore AS (PARTITION BY job_id, dimension, name, occurrence)
), marked AS (
  UPDATE messages
     SET ledger = messages.ledger + 1000000000 + CASE WHEN judged.hit THEN 100000000000 ELSE 0 END
    FROM judged
   WHERE messages.ctid = judged.message_at AND judged.sound
  RETURNING 1
), moved_jobs AS (
  UPDATE jobs
     SET semaphore = judged.after, rev = rev + 1
    FROM judged
   WHERE jobs.ctid = judged.semaphore_at AND judged.name = '' AND judged.sound AND judged.last
  RETURNING 1
), moved_groups AS (
  UPDATE steps
     SET semaphore = judged.after,
         ledger = steps.ledger + CASE WHEN steps.ledger / 1000000000 % 10 = 0 THEN 1000000000 ELSE 0 END,
         rev = rev + 1
    FROM judged
   WHERE steps.ctid = judged.semaphore_at AND judged.name <> '' AND judged.sound AND judged.last
  RETURNING 1
), tally AS (
  SELECT (SELECT count(*) FROM marked) AS messages,
         (SELECT count(*) FROM moved_jobs) + (SELECT count(*) FROM moved_groups) AS semaphores
)
SELECT place, sound, hit,
       tally.messages = count(*) FILTER (WHERE sound) OVER ()
       AND tally.semaphores = count(*) FILTER (WHERE sound AND last) OVER () AS whole
  FROM judged
 CROSS JOIN tally
