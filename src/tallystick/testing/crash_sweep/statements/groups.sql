-- groups: the semaphore of every group.
SELECT job_id, semaphore FROM steps WHERE kind = 'group'
