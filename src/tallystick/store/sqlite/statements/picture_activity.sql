-- picture_activity: one activity by its place. No row: it has not begun.
SELECT @names(Activity)
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4
