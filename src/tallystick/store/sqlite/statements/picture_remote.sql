-- picture_remote: remote steps of workflows by job and place, be they open or not. No row: it has not begun.
-- takes: places list
SELECT steps.job_id, steps.dimension, steps.name, steps.occurrence, @names(RemoteStep, steps)
  FROM :places
 CROSS JOIN steps
 WHERE steps.job_id = wanted.value ->> 0 AND steps.dimension = wanted.value ->> 1 AND steps.name = wanted.value ->> 2
   AND steps.occurrence = wanted.value ->> 3 AND steps.kind = 'remote'
