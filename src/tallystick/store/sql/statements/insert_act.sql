-- insert_act: keep what a person did, and who it was. The place in the chain is the key, so a second author of the same place fails.
-- takes: seq int, at int, about text, name text, verb text, who text, told text, said_hash text, prev_hash text,
--   event_hash text
INSERT INTO acts (@names(ActRow))
VALUES (:seq, :at, :about, :name, :verb, :who, :told, :said_hash, :prev_hash, :event_hash)
