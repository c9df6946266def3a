-- count_records: how many records there are, by kind and status.
SELECT kind, status, count(*)
  FROM records
 GROUP BY kind, status
 ORDER BY kind, status;
