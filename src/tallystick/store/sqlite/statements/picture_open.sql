-- picture_open: every activity of jobs that is open.
-- takes: jobs list
SELECT @names(Activity, steps)
  FROM :jobs
 CROSS JOIN steps INDEXED BY steps_open
 WHERE steps.job_id = wanted.value AND steps.completed_at IS NULL AND steps.kind <> 'protocol'
