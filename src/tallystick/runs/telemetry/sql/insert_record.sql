-- insert_record: keep a record once. No change means that the id is known already, which is a success.
INSERT INTO records (record_id, kind, run_id, parent_id, name, status, ts, trace_id, span_id, data)
VALUES (:record_id, :kind, :run_id, :parent_id, :name, :status, :ts, :trace_id, :span_id, :data)
ON CONFLICT (record_id) DO NOTHING;
