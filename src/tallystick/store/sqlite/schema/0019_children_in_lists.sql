-- Children that end are counted in lists: their words in one statement, and each group once in a flush.
DROP TRIGGER child_counted;
DROP VIEW child_counts;
