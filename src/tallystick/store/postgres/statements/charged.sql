-- charged: how many charged attempts each of the listed jobs has had since it last made progress.
SELECT r ->> 0, (SELECT count(*) FROM futile_attempts AS f WHERE f.job_id = r ->> 0)
  FROM jsonb_array_elements($1::jsonb) AS r
