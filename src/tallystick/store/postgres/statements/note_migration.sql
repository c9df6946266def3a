-- note_migration: this migration is part of the schema now.
INSERT INTO tallystick_migrations (version, name) VALUES ($1::bigint, $2)
