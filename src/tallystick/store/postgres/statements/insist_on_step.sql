-- insist_on_step: fail, and the transaction with it, unless this very step was written before in this transaction.
-- $1 job, $2 dimension, $3 name, $4 occurrence, $5 the hash that makes it this one.
SELECT insist(EXISTS (SELECT 1
                        FROM steps
                       WHERE job_id = $1 AND dimension = $2::bigint AND name = $3 AND occurrence = $4::bigint
                         AND event_hash = $5))
