-- kept: a reservation. No row: it was not made.
-- takes: tenant_id text, scope text, value text
SELECT @names(Kept) FROM idempotency WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value
