-- held_counts: how many jobs wait for a person, by what holds them; counted up to a limit.
-- takes: limit int
SELECT hold, count(*)
  FROM (SELECT hold FROM jobs WHERE hold IS NOT NULL LIMIT :limit) AS kept
 GROUP BY hold
