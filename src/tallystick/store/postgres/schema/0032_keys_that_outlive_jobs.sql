-- A removal says which keys of effects it leaves: they are held by that when the facts are gone that told of them.
ALTER TABLE pruned ADD COLUMN keys TEXT;
CREATE INDEX pruned_with_keys ON pruned (job_id) WHERE keys <> '';
