-- answer: the message that answers a wait and has not been taken: a signal of its name, its own timer when due, or the
-- word that its group is closed. The one that drives the segment goes first, else the one that came first. Each is
-- looked up by itself: how many others wait in the inbox does not matter.
SELECT found.guid, found.kind, found.payload, coalesce(found.due_at, found.created_at) AS since, found.arrived
  FROM ((SELECT *
           FROM messages
          WHERE job_id = $1 AND kind = 'signal' AND name = $3 AND acked_at IS NULL
            AND ledger / 10000000000 % 10 = 0 AND $5::text = 'wait'
          ORDER BY arrived
          LIMIT 1)
        UNION ALL
        SELECT named.*
          FROM unnest(ARRAY[$7::text,
                            'join:' || $1::text || ':' || $2::bigint || ':' || $3::text || '#' || $4::bigint,
                            $1::text || ':' || $2::bigint || ':' || $3::text || '#' || $4::bigint || ':timer'])
                 AS known (guid)
         CROSS JOIN LATERAL (SELECT * FROM messages WHERE messages.guid = known.guid OFFSET 0) AS named
         WHERE named.job_id = $1 AND named.acked_at IS NULL AND named.ledger / 10000000000 % 10 = 0 AND named.name = $3
           AND ((named.kind = 'signal' AND $5::text = 'wait')
             OR (named.kind = 'resume' AND named.dimension = $2 AND named.occurrence = $4)
             OR (named.kind = 'timer' AND named.dimension = $2 AND named.occurrence = $4 AND named.due_at <= $6))) AS found
 ORDER BY found.guid <> $7::text, since, found.arrived
 LIMIT 1
