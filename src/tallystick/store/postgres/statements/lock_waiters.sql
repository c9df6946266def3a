-- lock_waiters: as `lock_pictures`, and hold the jobs as well that wait for keys which effects of these jobs ($3) have. After
-- `lock_keys`, so that none comes to wait meanwhile.
SELECT job_id
  FROM jobs
 WHERE job_id = ANY (ARRAY(SELECT unnest($1::text[])
                           UNION
                           SELECT parent_job_id FROM jobs WHERE job_id = ANY ($2::text[]) AND parent_step IS NOT NULL
                           UNION
                           SELECT w.job_id
                             FROM unnest($3::text[]) AS listed (job_id)
                            CROSS JOIN LATERAL (
                                  SELECT exec_id
                                    FROM effect_keys
                                   WHERE effect_keys.job_id = listed.job_id AND effect_keys.outcome IS NULL
                                  OFFSET 0) AS e
                            CROSS JOIN LATERAL (
                                  SELECT attempts.job_id
                                    FROM attempts
                                   WHERE attempts.guid = 'effect:' || e.exec_id AND attempts.reason = 'DUPLICATE_COMMIT'
                                  OFFSET 0) AS w))
 ORDER BY job_id
   FOR NO KEY UPDATE
