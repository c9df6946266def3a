-- hold_pruned: the writer holds the whole file, the log of removals too.
SELECT 1
