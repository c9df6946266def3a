-- insert_protocol_jobs: protocol jobs are born with their first directives; the handler of one is its protocol, and no worker claims it.
-- takes: list jsonb, wall int
-- each: ProtocolJob, NewProtocolJob, head_n bigint, head_hash bytea
INSERT INTO jobs (
  @names(ProtocolJob), @names(NewProtocolJob), head_n, head_hash, kind, handler, ledger_form, start_acked_at, created_at, updated_at
)
SELECT @fields(ProtocolJob), @fields(NewProtocolJob), head_n, head_hash, 'protocol', protocol_id, 1, :wall, :wall, :wall
  FROM (SELECT @each(r) FROM jsonb_array_elements(:list) AS r) AS listed
