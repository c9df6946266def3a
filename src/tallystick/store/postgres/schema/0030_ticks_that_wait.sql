-- A tick that waits for the end of the job before it is remembered to have been in time.
ALTER TABLE schedules ADD COLUMN waits_since BIGINT;
