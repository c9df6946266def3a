-- move_reservation: a second submission under the key of a job that was retried gets the job that took its place.
-- No row changed: the job was submitted without a key, or its key belongs to another job.
-- takes: job_id text, new_id text
UPDATE idempotency
   SET job_id = :new_id
 WHERE job_id = :job_id
   AND (tenant_id, scope, value) IN (
         SELECT tenant_id, CASE WHEN idempotency_key IS NULL THEN 'content' ELSE 'key' END,
                coalesce(idempotency_key, idempotency_hash)
           FROM jobs
          WHERE job_id = :job_id)
