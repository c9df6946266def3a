-- ask_descendants: whatever is below a job, not detached and not ended is asked to end, level by level.
-- takes: job_id text, before text[], asked text, at int, ends_at int, code text
SELECT ask_descendants(ARRAY[:job_id], :before, :asked, :at, :ends_at, :code)
