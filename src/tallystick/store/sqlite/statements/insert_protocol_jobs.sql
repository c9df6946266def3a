-- insert_protocol_jobs: a protocol job is born with its first directive; its handler is its protocol, and no worker claims it.
-- takes: ProtocolJob, NewProtocolJob, head_n, head_hash, at
INSERT INTO jobs (@names(ProtocolJob), @names(NewProtocolJob), head_n, head_hash, kind, handler, ledger_form, start_acked_at, created_at, updated_at)
VALUES (@values(ProtocolJob), @values(NewProtocolJob), :head_n, :head_hash, 'protocol', :protocol_id, 1, :at, :at, :at)
