-- insert_pruned: append removals to their log. The place in the chain is the key, so a second author of the same place fails.
INSERT INTO pruned (@names(PrunedRow))
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, value ->> 11
  FROM json_each(?1)
