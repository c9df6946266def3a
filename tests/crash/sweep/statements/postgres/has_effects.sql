-- has_effects: whether the user's table exists yet.
SELECT count(to_regclass('effects'))
