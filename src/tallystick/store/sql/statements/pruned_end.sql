-- pruned_end: where the log of removals ends. No row: nothing was ever removed.
SELECT seq, event_hash FROM pruned ORDER BY seq DESC LIMIT 1
