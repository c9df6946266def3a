-- dead_of_all: the same of all tenants; as many rows of the index are read as there are such jobs.
-- takes: handler text, before text, limit int
SELECT @names(JobRow)
  FROM jobs
 WHERE dead IS NOT NULL AND (:handler IS NULL OR handler = :handler) AND dead < :before
 ORDER BY dead DESC
 LIMIT :limit
