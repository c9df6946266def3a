-- group: the state of a group and the dimension it was opened in.
SELECT dimension, ledger, threshold, state, payload
  FROM steps
 WHERE job_id = ?1 AND name = ?2 AND occurrence = ?3 AND dimension = ?4 AND kind = 'group'
