-- Remote workers of one tenant ask for its directives: those of other tenants are not read for them.
CREATE INDEX outbox_of_tenant ON outbox (tenant_id, service, next_try_at) WHERE state = 'PENDING' AND via = 'pull';
