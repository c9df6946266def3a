-- Not as a list: of three words or more SQLite makes a table for every row that it asks.
DROP INDEX attempts_one_live;
CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit)
WHERE status = 'LEASED' OR status = 'IN_PROGRESS' OR status = 'COMMITTED';
