-- picture_open: every activity of a job that is open.
SELECT @names(Activity)
  FROM steps INDEXED BY steps_open
 WHERE job_id = ?1 AND completed_at IS NULL AND kind <> 'protocol'
