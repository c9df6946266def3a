-- An attempt at an effect that came to a key which another attempt has names that one, and its job waits for it.
CREATE INDEX attempts_that_wait ON attempts (guid) WHERE reason = 'DUPLICATE_COMMIT';
