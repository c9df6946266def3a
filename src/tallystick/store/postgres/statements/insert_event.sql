-- insert_event: append a fact. Its place in the chain is its key, so a second author of the same place fails.
-- No row: a step stands at that place.
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT $1::text, $2::bigint, $3::text, $4::bigint, $5::bigint, $6::text, $7::bytea, $8::bytea
 WHERE (SELECT s.n FROM steps AS s WHERE s.job_id = $1::text AND s.n = $2::bigint AND s.misplaced IS NULL) IS NULL
