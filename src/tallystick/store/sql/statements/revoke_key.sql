-- revoke_key: an API key opens nothing any more. No row changed: there is none of that name, or it was revoked before.
-- takes: kid text, wall int
UPDATE api_keys SET revoked_at = :wall WHERE kid = :kid AND revoked_at IS NULL
