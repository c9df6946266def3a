-- list_records: a page in the order of arrival after :after; an empty filter takes everything.
SELECT seq, record_id, kind, run_id, parent_id, name, status, ts, finished_at, error, trace_id, span_id,
       json(data), git_commit, commit_source
  FROM records
 WHERE seq > :after
   AND (:run_id = '' OR run_id = :run_id)
   AND (:kind = '' OR kind = :kind)
   AND (:status = '' OR status = :status)
 ORDER BY seq
 LIMIT :limit;
