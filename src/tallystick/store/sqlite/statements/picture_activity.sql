-- picture_activity: activities by job and place. No row: it has not begun.
-- takes: places list
SELECT @names(Activity, steps)
  FROM :places
 CROSS JOIN steps
 WHERE steps.job_id = wanted.value ->> 0 AND steps.dimension = wanted.value ->> 1 AND steps.name = wanted.value ->> 2
   AND steps.occurrence = wanted.value ->> 3
