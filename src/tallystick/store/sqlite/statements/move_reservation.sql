-- move_reservation: who submits again under the key of a job that was retried gets the job that took its place.
-- No row changed: the job was submitted without a key, or its key belongs to another job, which cannot be.
UPDATE idempotency
   SET job_id = ?2
 WHERE job_id = ?1
   AND (tenant_id, scope, value) IN (
         SELECT tenant_id, CASE WHEN idempotency_key IS NULL THEN 'content' ELSE 'key' END,
                coalesce(idempotency_key, idempotency_hash)
           FROM jobs
          WHERE job_id = ?1)
