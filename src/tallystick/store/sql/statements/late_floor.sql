-- late_floor: the last of so many jobs whose grace is over, or whose deadline has passed; no row: there are fewer of both.
-- takes: now int, window int
SELECT over.job_id
  FROM (SELECT job_id FROM jobs WHERE @part(grace_over, jobs) LIMIT 1 OFFSET :window - 1) AS over
UNION ALL
SELECT late.job_id
  FROM (SELECT job_id FROM jobs WHERE @part(deadline_over, jobs) LIMIT 1 OFFSET :window - 1) AS late
