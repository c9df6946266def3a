-- picture_groups: activities by their places ($1, a list), and the groups to which jobs belong that may end ($2).
SELECT @names(Activity, s)
  FROM (SELECT r ->> 0 AS job_id, (r ->> 1)::bigint AS dimension, r ->> 2 AS name, (r ->> 3)::bigint AS occurrence
          FROM jsonb_array_elements($1::jsonb) AS r
        UNION
        SELECT j.parent_job_id, place[1]::bigint, place[2], place[3]::bigint
          FROM jobs AS j
         CROSS JOIN LATERAL regexp_match(j.parent_step, '^(\d+):(.*)#(\d+)$') AS place
         WHERE j.job_id = ANY ($2::text[]) AND j.parent_step IS NOT NULL) AS wanted
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = wanted.job_id AND steps.dimension = wanted.dimension AND steps.name = wanted.name
          AND steps.occurrence = wanted.occurrence
       OFFSET 0) AS s
