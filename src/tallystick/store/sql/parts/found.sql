-- found: whether a job has what a person looks for.
((:tenant_id IS NULL OR @job.tenant_id = :tenant_id) AND (:states = '[]' OR @job.state IN :states)
 AND (:handler IS NULL OR @job.handler = :handler) AND (:queue IS NULL OR @job.queue = :queue)
 AND (:key IS NULL OR @job.idempotency_key = :key) AND (:parent IS NULL OR @job.parent_job_id = :parent)
 AND (:held = 0 OR @job.hold IS NOT NULL)
 AND (:dead = 0 OR (@job.state = 'FAILED_FINAL' AND @job.retried_as IS NULL))
 AND (:since IS NULL OR @job.created_at >= :since) AND (:until IS NULL OR @job.created_at < :until)
 AND (:error IS NULL OR replace(lower(@job.error_message), lower(:error), '') <> lower(@job.error_message)))
