-- reservations: who holds which key.
SELECT value, job_id FROM idempotency WHERE scope = 'key'
