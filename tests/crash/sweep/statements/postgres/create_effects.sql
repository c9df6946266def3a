-- create_effects: the user's own table, without a unique key on purpose: a doubled effect must show.
CREATE TABLE IF NOT EXISTS effects (label TEXT NOT NULL, effect TEXT NOT NULL, token TEXT NOT NULL)
