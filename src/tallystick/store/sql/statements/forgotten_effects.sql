-- forgotten_effects: effects that might have been called again before an instant, the longest first, and whose job goes on without
-- them: no worker has it, and it is neither held nor due for as long. So many that rest are looked at.
-- takes: until int, looked int, limit int
SELECT @names(EffectRow, rests)
  FROM (SELECT *
          FROM effect_keys
         WHERE due_at <= :until AND phase = 'RESTING' AND outcome IS NULL
         ORDER BY due_at
         LIMIT :looked) AS rests
 CROSS JOIN jobs AS j
 WHERE j.job_id = rests.job_id AND j.state = 'IN_PROGRESS' AND j.hold IS NULL AND (j.ready_at IS NULL OR j.ready_at > :until)
   AND NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.job_id = j.job_id AND a.unit = '' AND a.status IN ('LEASED', 'IN_PROGRESS'))
 ORDER BY rests.due_at, rests.exec_id
 LIMIT :limit
