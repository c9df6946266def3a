-- migration_settings: the schema that a migration creates or changes, for this transaction.
SELECT set_config('search_path', quote_ident($1), true), set_config('tallystick.schema', $1, true)
