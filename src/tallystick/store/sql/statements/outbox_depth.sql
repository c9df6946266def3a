-- outbox_depth: how many directives are due and not out, counted up to a limit for each way, and since when the first.
-- takes: now int, limit int
SELECT count(*), min(next_try_at)
  FROM (SELECT next_try_at
          FROM (SELECT next_try_at
                  FROM outbox
                 WHERE state = 'PENDING' AND via <> 'pull' AND next_try_at <= :now
                 LIMIT :limit) AS pushed
         UNION ALL
        SELECT next_try_at
          FROM (SELECT next_try_at
                  FROM outbox
                 WHERE state = 'PENDING' AND via = 'pull' AND next_try_at <= :now
                 LIMIT :limit) AS pulled) AS due
