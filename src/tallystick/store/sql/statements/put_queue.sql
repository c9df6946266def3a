-- put_queue: a queue, new or in the place of the one that was seen; where its claims stand is left alone. No row: it was changed.
-- takes: Queue, seen int
INSERT INTO queues (@names(Queue)) VALUES (@values(Queue))
    ON CONFLICT (queue) DO UPDATE
   SET declared = excluded.declared, chosen = excluded.chosen, paused_by = excluded.paused_by, paused_at = excluded.paused_at,
       rev = excluded.rev
 WHERE queues.rev = :seen
