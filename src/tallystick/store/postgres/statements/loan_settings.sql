-- loan_settings: what a user's transaction runs with: the user's own search path, and $2 as the longest it may think or wait.
SELECT set_config('search_path', $1, true), set_config('statement_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $2, true)
