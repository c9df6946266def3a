-- due_jobs: which jobs a claim would take, in the order in which it takes them; those of others are left out.
-- takes: queues text[], handlers text[], limit int, wall_now int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
), level AS MATERIALIZED (
  SELECT asked.queue, priority
    FROM unnest(:queues) WITH ORDINALITY AS asked (queue, place)
   CROSS JOIN generate_series(0, 9) AS priority
   ORDER BY asked.place, priority
)
SELECT due.job_id
  FROM clock
 CROSS JOIN level
 CROSS JOIN LATERAL (
       SELECT j.job_id
         FROM jobs AS j
        WHERE @part(due, j)
        ORDER BY j.ready_at, j.job_id
        LIMIT :limit
          FOR NO KEY UPDATE OF j SKIP LOCKED) AS due
 LIMIT :limit
