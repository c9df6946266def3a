-- activities: what a job waits for or has waited for, open or not.
SELECT job_id, dimension, name, occurrence, kind, state, ledger, result, semaphore, threshold, failed,
       (payload IS NOT DISTINCT FROM 'fail_fast')::int, n
  FROM steps
 WHERE kind IN ('wait', 'sleep', 'group')
 ORDER BY job_id, dimension, name, occurrence
