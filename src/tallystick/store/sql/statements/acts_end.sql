-- acts_end: where the chain of acts ends. No row: there are no acts.
SELECT seq, event_hash FROM acts ORDER BY seq DESC LIMIT 1
