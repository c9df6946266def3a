-- has_effects: whether the user's table exists yet.
SELECT count(*) FROM sqlite_schema WHERE name = 'effects'
