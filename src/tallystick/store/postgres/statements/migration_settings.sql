-- migration_settings: the schema that a migration creates or changes, no limit of time, and any plan, for this transaction.
-- Functions that it makes keep this path, so temporary tables come last in it: a user's must not stand before ours.
SELECT set_config('search_path', quote_ident($1) || ', pg_temp', true), set_config('tallystick.schema', $1, true),
       set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
       set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
       set_config('enable_mergejoin', 'on', true)
