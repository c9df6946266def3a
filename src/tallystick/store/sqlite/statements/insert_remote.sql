-- insert_remote: a remote step of a workflow begins.
-- takes: job_id, dimension, name, occurrence, attempt, at, RemoteStep
INSERT INTO steps (job_id, dimension, name, occurrence, kind, attempt, created_at, updated_at, @names(RemoteStep))
VALUES (:job_id, :dimension, :name, :occurrence, 'remote', :attempt, :at, :at, @values(RemoteStep))
