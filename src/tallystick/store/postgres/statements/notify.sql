-- notify: wake the listeners on channel $1 when this transaction is durable; one per flush, and only a hint.
SELECT pg_notify($1, '')
