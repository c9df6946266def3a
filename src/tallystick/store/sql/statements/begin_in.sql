-- begin_in: note of jobs that they have begun in a queue with limits.
-- takes: queue text, jobs list
UPDATE jobs SET began_in = :queue WHERE job_id IN :jobs AND began_in IS NULL
