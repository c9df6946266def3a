-- copies: the records of forks, each beside the row that it was copied from; null where there is none that
-- is the same, apart from what the row of a wait or a group may learn after its end.
SELECT copy.job_id, copy.name, copy.occurrence, origin.job_id
  FROM steps AS copy
  LEFT JOIN steps AS origin
    ON origin.job_id = copy.origin_job_id AND origin.dimension = copy.origin_dimension AND origin.name = copy.name
   AND origin.occurrence = copy.occurrence AND origin.kind = copy.kind AND origin.state = copy.state
   AND origin.ledger - copy.ledger IN (0, 100000000, 1000000000, 1100000000) AND coalesce(origin.result, '') = coalesce(copy.result, '')
   AND coalesce(origin.error, '') = coalesce(copy.error, '') AND coalesce(origin.notes, '') = coalesce(copy.notes, '')
   AND origin.n IS NOT NULL AND origin.origin_job_id IS NULL
 WHERE copy.origin_job_id IS NOT NULL
