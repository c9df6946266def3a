-- owed_hooks: jobs to which a hook is owed by an instant, the longest first: those of the listed workflows, or of any.
-- takes: handlers list, any int, due int, limit int
SELECT @names(OwedHook)
  FROM jobs
 WHERE hook_due IS NOT NULL AND hook_due <= :due AND (:any = 1 OR handler IN :handlers)
 ORDER BY hook_due
 LIMIT :limit
