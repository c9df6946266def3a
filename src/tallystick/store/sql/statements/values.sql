-- values: what these jobs show, of one name if it is not empty, what was set first in front.
-- takes: jobs list, name text
SELECT @names(ShownValue) FROM job_values WHERE job_id IN :jobs AND (:name = '' OR name = :name) ORDER BY changed_at, job_id, name
