-- xid_status: what became of transaction $1: committed, aborted, in progress, or null when that is no longer known.
SELECT pg_xact_status($1::xid8)
