-- get_record: one record by its id. No row back: no such record.
SELECT seq, record_id, kind, run_id, parent_id, name, status, ts, finished_at, error, trace_id, span_id,
       json(data), git_commit, commit_source
  FROM records
 WHERE record_id = :record_id;
