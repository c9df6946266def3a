-- children: how the children of a group stood when it was joined, in their order. One that it had not counted by then has
-- not ended for its parent, whatever became of it since: a replay must see what the first run saw.
-- Those of a group that was copied into a fork are where it was joined.
SELECT j.job_id, CASE WHEN m.guid IS NULL OR m.ledger = 0 THEN 'IN_PROGRESS' ELSE j.state END, j.result, j.error, j.error_code, j.error_message, j.handler
  FROM jobs AS j
  LEFT JOIN LATERAL (SELECT guid, ledger FROM messages WHERE guid = 'child:' || j.job_id OFFSET 0) AS m ON true
 WHERE j.parent_job_id = coalesce(
         (SELECT origin_job_id FROM steps WHERE job_id = $1 AND dimension = $2::bigint AND name = $3 AND occurrence = $4::bigint),
         $1)
   AND j.parent_step = coalesce(
         (SELECT origin_dimension FROM steps WHERE job_id = $1 AND dimension = $2::bigint AND name = $3 AND occurrence = $4::bigint),
         $2::bigint)::text || ':' || $3 || '#' || $4::bigint::text
   AND j.job_id > $5
 ORDER BY j.job_id
 LIMIT $6::bigint
