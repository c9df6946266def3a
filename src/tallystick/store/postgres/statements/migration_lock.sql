-- migration_lock: one process at a time changes schema $1, for as long as its transaction lasts.
SELECT pg_advisory_xact_lock(hashtextextended('tallystick migrations of ' || $1::text, 0))
