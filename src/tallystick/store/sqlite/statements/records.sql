-- records: the recorded steps of the current dimensions of jobs (?1 maps one to the other), and what is open there and has no
-- place in the chain yet; in no order.
SELECT steps.job_id, event_hash, @names(Record)
  FROM json_each(?1) AS wanted CROSS JOIN steps
 WHERE steps.job_id = wanted.key AND steps.dimension = wanted.value AND (n IS NOT NULL OR completed_at IS NULL)
