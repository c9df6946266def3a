-- insert_pruned: append removals to their log. The place in the chain is the key, so a second author of the same place fails.
-- takes: list jsonb
INSERT INTO pruned (@names(PrunedRow))
SELECT @fields(PrunedRow) FROM (SELECT @read(PrunedRow, r) FROM jsonb_array_elements(:list) AS r) AS listed
