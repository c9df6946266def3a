-- dead: a page of jobs of a tenant that have failed and that no other job took the place of, newest first, by the index that
-- holds only those.
-- takes: tenant_id text, handler text, before text, limit int
SELECT @names(JobRow)
  FROM jobs
 WHERE tenant_id = :tenant_id AND dead IS NOT NULL AND (:handler IS NULL OR handler = :handler) AND dead < :before
 ORDER BY dead DESC
 LIMIT :limit
