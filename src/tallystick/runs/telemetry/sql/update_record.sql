-- update_record: what became of a record; an empty value leaves the old one. No row back: no such record.
UPDATE records
   SET status = iif(:status = '', status, :status),
       finished_at = iif(:finished_at = '', finished_at, :finished_at),
       error = iif(:error = '', error, :error)
 WHERE record_id = :record_id
RETURNING record_id;
