-- held_counts: how many jobs wait for a person, for each of these holds; each is counted up to a limit.
-- takes: holds list, limit int
SELECT wanted.value, (SELECT count(*)
                        FROM (SELECT 1
                                FROM jobs AS j
                               WHERE j.hold IS NOT NULL AND j.hold = wanted.value
                               LIMIT :limit) AS kept)
  FROM :holds
