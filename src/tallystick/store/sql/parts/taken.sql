-- taken: a slot that counts: its attempt has not ended or, if it holds, its job.
(EXISTS (SELECT 1
           FROM attempts AS live
          WHERE live.job_id = @job.job_id AND live.unit = '' AND live.attempt = @job.attempt AND @is(held, live.status))
 OR (@job.holds = 1
     AND EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = @job.job_id AND jobs.completed_at IS NULL)))
