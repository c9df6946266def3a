-- charged_since_progress: how many charged attempts each of the listed jobs has had since it last recorded anything or
-- came to a wait or a turn, and whether a worker was lost over any of them.
SELECT r ->> 0, past.charged, past.suspect
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT count(*) AS charged, coalesce(bool_or(a.reason = 'EXPIRED'), false) AS suspect
         FROM attempts AS a
        WHERE a.job_id = r ->> 0 AND a.unit = '' AND a.charged = 1
          AND a.attempt >= coalesce((SELECT max(s.attempt) FROM steps AS s WHERE s.job_id = r ->> 0), 0)
          AND a.attempt > coalesce((SELECT max(w.attempt)
                                      FROM attempts AS w
                                     WHERE w.job_id = r ->> 0 AND w.unit = '' AND w.reason = 'SUSPENDED'), 0)) AS past
