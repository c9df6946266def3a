-- picture_open: every activity of these jobs that is open.
SELECT @names(Activity, s)
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = wanted.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol'
       OFFSET 0) AS s
