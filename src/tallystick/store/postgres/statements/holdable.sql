-- holdable: what decides whether a job is held or resumed, and by whom the fact is written.
SELECT j.state, j.attempt, j.dimension, j.hold,
       EXISTS (SELECT 1 FROM attempts AS a
                WHERE a.job_id = j.job_id AND a.unit = '' AND a.status IN ('LEASED', 'IN_PROGRESS'))
  FROM jobs AS j
 WHERE j.job_id = $1
