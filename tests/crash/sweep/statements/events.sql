-- events: the whole table, with all that a hash covers.
SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash FROM events
