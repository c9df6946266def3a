-- hold_pruned: one transaction at a time appends to the log of removals of this schema; taken before its end is read.
SELECT pg_advisory_xact_lock(hashtextextended('tallystick removals of ' || current_schema(), 0))
