-- picture_effects: the effects of these jobs that are open, and whether the lease of the last call is live by this clock.
-- takes: jobs list, epoch, boot
SELECT @names(EffectRow, e), a.lease_epoch = :epoch AND a.lease_expires_at > :boot
  FROM :jobs
 CROSS JOIN effect_keys AS e INDEXED BY effect_keys_of_job
 CROSS JOIN attempts AS a
 WHERE e.job_id = wanted.value AND e.outcome IS NULL
   AND a.job_id = e.job_id AND a.unit = e.unit AND a.attempt = e.attempt
