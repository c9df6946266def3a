-- in_transaction: how many connections of a process have a transaction open.
SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND xact_start IS NOT NULL
