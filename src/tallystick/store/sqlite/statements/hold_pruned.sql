-- hold_pruned: whoever writes to the file holds the log of removals too.
SELECT 1
