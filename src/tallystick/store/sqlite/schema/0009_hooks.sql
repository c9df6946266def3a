-- The hooks that the program of a job declares, which of them was told where the job stands, and since when one is owed: that
-- follows from the row. A hook that is being called, or that raised, is left alone until `hook_at`.
ALTER TABLE jobs ADD COLUMN hooks TEXT;
ALTER TABLE jobs ADD COLUMN hook_told TEXT;
ALTER TABLE jobs ADD COLUMN hook_at INTEGER;
ALTER TABLE jobs ADD COLUMN hook_tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN hook_error TEXT;
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
