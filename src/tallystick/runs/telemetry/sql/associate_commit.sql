-- associate_commit: a commit came out of this record. No row back: no such record.
UPDATE records
   SET git_commit = :git_commit,
       commit_source = :commit_source
 WHERE record_id = :record_id
RETURNING record_id;
