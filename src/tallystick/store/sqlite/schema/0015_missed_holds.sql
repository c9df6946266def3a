-- The hook of a hold that was over before any worker looked is still owed.
DROP INDEX jobs_hook_due;
ALTER TABLE jobs DROP COLUMN hook_due;
ALTER TABLE jobs ADD COLUMN hook_due INTEGER GENERATED ALWAYS AS (
  -- rule: hooks job hook_due
  CASE WHEN hooks IS NOT NULL
        AND replace(hooks, CASE WHEN hook_told = 'missed' THEN 'held'
         WHEN state = 'SUCCEEDED' THEN 'succeeded'
         WHEN state = 'FAILED_FINAL' THEN 'failed'
         WHEN state = 'CANCELLED' THEN 'cancelled'
         WHEN hold IS NOT NULL THEN 'held' END, '') <> hooks
        AND coalesce(hook_told, '') <> CASE WHEN hook_told = 'missed' THEN 'held'
         WHEN state = 'SUCCEEDED' THEN 'succeeded'
         WHEN state = 'FAILED_FINAL' THEN 'failed'
         WHEN state = 'CANCELLED' THEN 'cancelled'
         WHEN hold IS NOT NULL THEN 'held' END
       THEN coalesce(hook_at, updated_at) END
  -- end rule
) VIRTUAL;
CREATE INDEX jobs_hook_due ON jobs (hook_due) WHERE hook_due IS NOT NULL;
