-- move_effects: the row of an effect as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
-- takes: EffectRow, before
UPDATE effect_keys
   SET state = :state, phase = :phase, outcome = :outcome, result = :result, error = :error, lease_id = :lease_id,
       calls = :calls, probes = :probes, due_at = :due_at, doubt = :doubt, called_at = :called_at, ended_at = :ended_at,
       ended_by = :ended_by, rev = :rev, kept = :kept
 WHERE exec_id = :exec_id AND rev = :before
