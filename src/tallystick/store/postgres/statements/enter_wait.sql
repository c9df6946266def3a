-- enter_wait: count the entry of leg 2 on the wait that a driving message answers, unless it was counted before.
-- The entries of a group are its children, so the word that it is closed is not one. Of several open waits of one name
-- the first takes the signal.
UPDATE steps
   SET ledger = ledger + 1, rev = rev + 1
 WHERE job_id = $1 AND dimension = $3 AND completed_at IS NULL AND state = 'IN_PROGRESS' AND ledger = 1100000000000
   AND kind <> 'group'
   AND EXISTS (SELECT 1
                 FROM messages AS m
                WHERE m.guid = $2 AND m.name = steps.name
                  AND (m.occurrence = steps.occurrence OR (m.kind = 'signal' AND steps.kind = 'wait')))
   AND NOT EXISTS (SELECT 1
                     FROM steps AS before
                    WHERE before.job_id = $1 AND before.dimension = $3 AND before.name = steps.name
                      AND before.completed_at IS NULL
                      AND before.kind = 'wait' AND before.state = 'IN_PROGRESS' AND before.occurrence < steps.occurrence
                      AND EXISTS (SELECT 1 FROM messages AS m WHERE m.guid = $2 AND m.kind = 'signal'))
