-- answer: the message that answers a wait and has not been taken: a signal of its name, its own timer when due, or the
-- word that its group is closed. The one that drives the segment goes first, else the one that came first. Each is
-- looked up by itself: how many others wait in the inbox does not matter.
SELECT guid, kind, payload, coalesce(due_at, created_at) AS since, arrived
  FROM (SELECT * FROM (SELECT *
                         FROM messages INDEXED BY messages_waiting
                        WHERE job_id = ?1 AND kind = 'signal' AND name = ?3 AND acked_at IS NULL
                          AND ledger / 10000000000 % 10 = 0 AND ?5 = 'wait'
                        ORDER BY arrived
                        LIMIT 1)
        UNION ALL
        SELECT * FROM messages
         WHERE guid = ?7 AND job_id = ?1 AND kind = 'signal' AND name = ?3 AND acked_at IS NULL
           AND ledger / 10000000000 % 10 = 0 AND ?5 = 'wait'
        UNION ALL
        SELECT * FROM messages
         WHERE guid = 'join:' || ?1 || ':' || ?2 || ':' || ?3 || '#' || ?4 AND job_id = ?1 AND acked_at IS NULL
           AND ledger / 10000000000 % 10 = 0
        UNION ALL
        SELECT * FROM messages
         WHERE guid = ?1 || ':' || ?2 || ':' || ?3 || '#' || ?4 || ':timer' AND job_id = ?1 AND acked_at IS NULL
           AND ledger / 10000000000 % 10 = 0 AND due_at <= ?6)
 ORDER BY guid <> ?7, since, arrived
 LIMIT 1
