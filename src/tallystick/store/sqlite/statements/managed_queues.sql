-- managed_queues: those of these queues that have a row, and where their claims stand.
-- takes: queues list
SELECT @names(Queue), turn, full_us FROM queues WHERE queue IN :queues
