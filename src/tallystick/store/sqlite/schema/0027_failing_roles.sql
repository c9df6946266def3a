-- A worker says which of its roles fail, and why.
ALTER TABLE workers ADD COLUMN failing TEXT NOT NULL DEFAULT '{}';
