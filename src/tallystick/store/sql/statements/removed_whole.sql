-- removed_whole: the lines of the log of removals that name these jobs as gone.
-- takes: jobs list
SELECT @names(PrunedRow) FROM pruned WHERE job_id IN :jobs AND whole = 1 ORDER BY seq
