-- answer: the message that answers a wait and has not been taken: a signal of its name, its own timer when due, or the
-- word that its group is closed. The one that drives the segment goes first, else the one that came first.
SELECT guid, kind, payload, coalesce(due_at, created_at), arrived
  FROM messages INDEXED BY messages_inbox
 WHERE job_id = ?1 AND acked_at IS NULL AND ledger / 10000000000 % 10 = 0
   AND ((kind = 'signal' AND name = ?3 AND ?5 = 'wait')
     OR (kind = 'resume' AND dimension = ?2 AND name = ?3 AND occurrence = ?4)
     OR (kind = 'timer' AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND due_at <= ?6))
 ORDER BY guid <> ?7, coalesce(due_at, created_at), arrived
 LIMIT 1
