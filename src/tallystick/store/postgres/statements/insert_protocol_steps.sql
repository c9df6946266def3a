-- insert_protocol_steps: remote steps are born with their jobs.
-- takes: list jsonb, wall int
INSERT INTO steps (@names(ProtocolStep), dimension, occurrence, kind, created_at, updated_at)
SELECT @fields(ProtocolStep), 0, 1, 'protocol', :wall, :wall
  FROM (SELECT @read(ProtocolStep, r) FROM jsonb_array_elements(:list) AS r) AS listed
