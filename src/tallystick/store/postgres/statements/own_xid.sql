-- own_xid: the number of this transaction, by which its fate can be asked for later; null when it has written nothing.
SELECT pg_current_xact_id_if_assigned()::text
