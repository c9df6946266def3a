-- insert_protocol_steps: a remote step is born with its job.
-- takes: ProtocolStep, at
INSERT INTO steps (@names(ProtocolStep), dimension, occurrence, kind, created_at, updated_at)
VALUES (@values(ProtocolStep), 0, 1, 'protocol', :at, :at)
