-- use_path: the search path of the statements that follow in this transaction.
SELECT set_config('search_path', $1, true)
