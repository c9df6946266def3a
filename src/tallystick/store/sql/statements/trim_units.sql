-- trim_units: the attempts at effects of turns that are written down as trimmed go, before their steps; the keys stay.
-- No row changed: there were none.
-- takes: job_id text, dimension int
DELETE FROM attempts
 WHERE job_id = :job_id AND unit <> ''
   AND unit IN (SELECT steps.dimension || '/' || steps.name || '#' || steps.occurrence
                  FROM steps
                 WHERE steps.job_id = :job_id AND steps.dimension <= :dimension AND steps.kind = 'effect')
