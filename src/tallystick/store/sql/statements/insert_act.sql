-- insert_act: keep what a person did, and who it was.
-- takes: at int, about text, name text, verb text, who text, told text
INSERT INTO acts (at, about, name, verb, who, told) VALUES (:at, :about, :name, :verb, :who, :told)
