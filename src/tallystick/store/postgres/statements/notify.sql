-- notify: wake whoever listens on channel $1 when this transaction is durable; one a flush, and only a hint.
SELECT pg_notify($1, '')
