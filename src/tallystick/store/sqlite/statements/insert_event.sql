-- insert_event: append a fact. Its place in the chain is its key, so a second author of the same place fails.
-- takes: StoredEvent
-- row: (@values(StoredEvent))
INSERT INTO events (@takes) VALUES @rows
