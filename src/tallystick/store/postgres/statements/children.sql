-- children: how the children of a group stood when it was joined, in their order. One that was not counted by then has
-- not ended for its parent, whatever became of it since: a replay must see what the first run saw.
SELECT j.job_id, CASE WHEN m.guid IS NULL THEN 'IN_PROGRESS' ELSE j.state END, j.result, j.error, j.error_code, j.error_message
  FROM jobs AS j
  LEFT JOIN LATERAL (SELECT guid FROM messages WHERE guid = 'child:' || j.job_id OFFSET 0) AS m ON true
 WHERE j.parent_job_id = $1 AND j.parent_step = $2 AND j.job_id > $3
 ORDER BY j.job_id
 LIMIT $4::bigint
