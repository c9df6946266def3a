-- key: one API key by its name.
-- takes: kid text
SELECT @names(ApiKey) FROM api_keys WHERE kid = :kid
