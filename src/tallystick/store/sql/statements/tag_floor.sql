-- tag_floor: the last of so many jobs with a tag before one, newest first; no row: there are fewer.
-- takes: tag text, before text, window int
SELECT job_id FROM job_tags WHERE tag = :tag AND job_id < :before ORDER BY job_id DESC LIMIT 1 OFFSET :window - 1
