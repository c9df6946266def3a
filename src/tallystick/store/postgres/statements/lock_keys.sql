-- lock_keys: nobody else decides who has these keys of effects ($1) until this transaction ends. A key that nobody has is no row
-- that could be held. Before all other locks, and in their order.
SELECT pg_advisory_xact_lock(hashtextextended(wanted.key, 0))
  FROM (SELECT key FROM unnest($1::text[]) AS listed (key) ORDER BY key) AS wanted
