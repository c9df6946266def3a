-- insert_children: children are born for groups; an identifier follows from its place, so a second birth is refused.
-- takes: list jsonb, wall int, state text, root_ledger int
-- each: NewJob, head_n bigint, head_hash bytea, parent_step text
INSERT INTO jobs (
  job_id, payload, @names(Alike), ready_at, deadline_at, created_at, state, root_ledger, ledger_form, head_n, head_hash,
  updated_at, parent_step
)
SELECT job_id, payload, @fields(Alike), :wall + ready_at - created_at, :wall + deadline_at - created_at, :wall, :state,
       :root_ledger, 1, head_n, head_hash, :wall, parent_step
  FROM (SELECT @each(r) FROM jsonb_array_elements(:list) AS r) AS listed
