-- now: the wall time, once for a transaction; $1 if it is not this server's.
SELECT store_ms($1::bigint)
