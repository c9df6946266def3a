-- tags: a page of tags behind one, each with the tags of the job that it names; null: there is no such job, or it has none.
-- takes: tag text, job_id text, limit int
SELECT t.tag, t.job_id, j.tags
  FROM (SELECT tag, job_id FROM job_tags WHERE (tag, job_id) > (:tag, :job_id) ORDER BY tag, job_id LIMIT :limit) AS t
  LEFT JOIN jobs AS j ON j.job_id = t.job_id
 ORDER BY t.tag, t.job_id
