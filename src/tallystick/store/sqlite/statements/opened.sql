-- opened: what is open in the current dimensions of jobs (?1 maps one to the other), in no order.
SELECT steps.job_id, @names(Opened)
  FROM json_each(?1) AS wanted CROSS JOIN steps
 WHERE steps.job_id = wanted.key AND steps.dimension = wanted.value AND steps.completed_at IS NULL
