-- begin_settings: what a transaction needs to know when it cannot rely on its connection (behind a pooler).
-- $1 is the search path, $2 the longest a statement may take, $3 the longest it may wait for a
-- lock. Row estimates of a young table mislead the planner.
SELECT set_config('search_path', $1, true), set_config('statement_timeout', $2, true),
       set_config('lock_timeout', $3, true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('enable_mergejoin', 'off', true)
