-- insert_planned_steps: inline steps of jobs whose rows are held, and whose leases were looked at under that lock.
-- It fails unless all were written: an event may stand at a place.
-- takes: list jsonb, count int
-- each: Fence, Recorded, Link
WITH step AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), written AS (
  INSERT INTO steps (job_id, attempt, @names(Recorded), @names(Link))
  SELECT job_id, attempt, @fields(Recorded), @fields(Link)
    FROM step
   WHERE (SELECT count(*) FROM events WHERE events.job_id = step.job_id AND events.n = step.n) = 0
  RETURNING 1
)
SELECT expect_rows('insert_planned_steps', (SELECT count(*) FROM written), :count)
