-- limited_names: the names of all queues that have a row.
SELECT queue FROM queues ORDER BY queue
