-- keys: every API key, in the order of their names.
SELECT @names(ApiKey) FROM api_keys ORDER BY kid
