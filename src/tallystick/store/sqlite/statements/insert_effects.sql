-- insert_effects: an effect begins, and takes its key.
-- A constraint failure means that another has it: two intents can never both succeed.
-- takes: EffectRow
INSERT INTO effect_keys (@names(EffectRow)) VALUES (@values(EffectRow))
