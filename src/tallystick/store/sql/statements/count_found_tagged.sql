-- count_found_tagged: the same of jobs with a tag.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int, tag text
SELECT count(*)
  FROM (SELECT 1
          FROM jobs AS j
         WHERE j.job_id IN (SELECT tagged.job_id
                              FROM job_tags AS tagged
                             WHERE tagged.tag = :tag AND tagged.job_id >= :first AND tagged.job_id < :before)
           AND @part(found, j)
         LIMIT :limit) AS counted
