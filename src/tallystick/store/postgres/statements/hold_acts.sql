-- hold_acts: one transaction at a time appends to the acts of this schema; taken before any row is, and before the end is read.
SELECT pg_advisory_xact_lock(hashtextextended('tallystick acts of ' || current_schema(), 0))
