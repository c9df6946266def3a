-- trimmed: of each job whose turns were trimmed the newest line that says so.
SELECT job_id, dimension, last_n, head_hash FROM pruned WHERE whole = 0 ORDER BY seq
