-- drop_worker: a worker has stopped.
-- takes: owner text
DELETE FROM workers WHERE owner = :owner
