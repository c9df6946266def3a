-- missing_places: how many of these facts (job, place, hash) are not there.
SELECT count(*)
  FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS written (job_id, n, event_hash)
 WHERE NOT EXISTS (SELECT 1
                     FROM events
                    WHERE events.job_id = written.job_id AND events.n = written.n
                      AND events.event_hash = written.event_hash)
   AND NOT EXISTS (SELECT 1
                     FROM steps
                    WHERE steps.job_id = written.job_id AND steps.n = written.n AND steps.misplaced IS NULL
                      AND steps.event_hash = written.event_hash)
