-- has_migrations: is there anything of ours in schema $1.
SELECT to_regclass(format('%I.tallystick_migrations', $1::text)) IS NOT NULL
