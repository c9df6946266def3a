-- put_worker: a worker says that it lives; what it is has not changed since it began.
-- takes: owner text, host text, pid int, version text, queues text, slots int, running int, failing text, started_at int, heard_at int
INSERT INTO workers (owner, host, pid, version, queues, slots, running, failing, started_at, heard_at)
VALUES (:owner, :host, :pid, :version, :queues, :slots, :running, :failing, :started_at, :heard_at)
    ON CONFLICT (owner) DO UPDATE SET running = excluded.running, failing = excluded.failing, heard_at = excluded.heard_at
