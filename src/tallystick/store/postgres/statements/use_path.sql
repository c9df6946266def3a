-- use_path: the search path of the statements that follow in this transaction. Where they are ours it names pg_temp
-- last, because temporary tables of the user are found first unless it is named.
SELECT set_config('search_path', $1, true)
