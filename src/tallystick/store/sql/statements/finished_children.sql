-- finished_children: those of the listed jobs that have ended, as their parents see them.
-- takes: jobs list
SELECT @names(ChildRow, j)
  FROM :jobs
 CROSS JOIN jobs AS j
 WHERE j.job_id = wanted.value AND j.completed_at IS NOT NULL
