-- insert_stale_reports: keep refused reports for people; they changed nothing else.
-- $1 the list, $2 wall time if it is not this server's.
INSERT INTO stale_reports (at, job_id, attempt, lease_id, report)
SELECT store_ms($2::bigint), r ->> 0, (r ->> 1)::bigint, r ->> 2, r ->> 3
  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
 ORDER BY place
