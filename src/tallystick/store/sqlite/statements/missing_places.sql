-- missing_places: how many of these facts (job, place, hash) are not there.
SELECT count(*)
  FROM json_each(?1) AS written
 WHERE NOT EXISTS (SELECT 1
                     FROM events
                    WHERE job_id = written.value ->> 0 AND n = written.value ->> 1
                      AND event_hash = unhex(written.value ->> 2))
   AND NOT EXISTS (SELECT 1
                     FROM steps
                    WHERE job_id = written.value ->> 0 AND n = written.value ->> 1 AND misplaced IS NULL
                      AND event_hash = unhex(written.value ->> 2))
