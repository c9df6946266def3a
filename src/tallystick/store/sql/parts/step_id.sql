-- step_id: how remote workers name a step.
CASE WHEN @job.kind = 'protocol' THEN @job.name ELSE @job.dimension || '/' || @job.name || '#' || @job.occurrence END
