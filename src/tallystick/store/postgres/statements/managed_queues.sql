-- managed_queues: those of these queues that have a row, held until this transaction ends, and where their claims stand. A claim that comes
-- second waits, and counts the slots that the first has taken. In the order of their names, so that claims do not wait in a circle.
-- takes: queues list
SELECT @names(Queue), turn, full_us FROM queues WHERE queue IN :queues ORDER BY queue FOR NO KEY UPDATE
