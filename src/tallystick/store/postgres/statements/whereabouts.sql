-- whereabouts: which server is this (since when it runs), which database, and which table stands there under the name of
-- ours: two connections that say the same write the same books.
SELECT pg_postmaster_start_time()::text, current_database(), to_regclass($1)::oid::text
