-- renew_leases: move the end of every lease in the list that is still live; an expired one is never revived.
UPDATE attempts
   SET lease_expires_at = ?4
  FROM (SELECT lease.value ->> 0 AS job_id, lease.value ->> 1 AS attempt, lease.value ->> 2 AS lease_id
          FROM json_each(?1) AS lease) AS held
 WHERE attempts.job_id = held.job_id AND attempts.unit = '' AND attempts.attempt = held.attempt
   AND attempts.lease_id = held.lease_id
   AND attempts.status = 'IN_PROGRESS' AND attempts.lease_epoch = ?2 AND attempts.lease_expires_at > ?3
RETURNING attempts.job_id, attempts.attempt, attempts.lease_id
