-- charged_since_progress: how many charged attempts each of the listed jobs has had since it last recorded anything.
SELECT r ->> 0,
       (SELECT count(*)
          FROM attempts AS a
         WHERE a.job_id = r ->> 0 AND a.unit = '' AND a.charged = 1
           AND a.attempt >= coalesce((SELECT max(s.attempt) FROM steps AS s WHERE s.job_id = r ->> 0), 0))
  FROM jsonb_array_elements($1::jsonb) AS r
