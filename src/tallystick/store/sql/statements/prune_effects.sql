-- prune_effects: these keys of effects go; that they do is written down. Fewer rows changed than given: one was gone.
-- takes: keys list
DELETE FROM effect_keys WHERE exec_id IN :keys
