-- in_flight: how many protocol jobs of a tenant have not ended, counted up to a limit. Each has one step with an instant of the sweep.
-- takes: tenant_id text, limit int
SELECT count(*)
  FROM (SELECT 1
          FROM steps AS s
          JOIN jobs AS j ON j.job_id = s.job_id
         WHERE s.lease_expires_at IS NOT NULL AND s.kind = 'protocol' AND j.tenant_id = :tenant_id
         LIMIT :limit) AS counted
