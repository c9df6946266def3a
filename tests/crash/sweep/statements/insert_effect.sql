-- insert_effect: one thing that must happen once.
INSERT INTO effects (label, effect, token) VALUES (?1, ?2, ?3)
