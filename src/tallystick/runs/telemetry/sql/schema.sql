-- The book of the telemetry service: one row a record, in the order of arrival.
-- A record is written once; only its status, its end, its error and its commit change later.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA busy_timeout = 5000;

CREATE TABLE IF NOT EXISTS records (
    seq           INTEGER PRIMARY KEY,
    record_id     TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL CHECK (kind IN ('run', 'child', 'event')),
    run_id        TEXT NOT NULL,
    parent_id     TEXT NOT NULL,
    name          TEXT NOT NULL,
    status        TEXT NOT NULL,
    ts            TEXT NOT NULL,
    finished_at   TEXT NOT NULL DEFAULT '',
    error         TEXT NOT NULL DEFAULT '',
    trace_id      TEXT NOT NULL,
    span_id       TEXT NOT NULL,
    data          TEXT NOT NULL,
    git_commit    TEXT NOT NULL DEFAULT '',
    commit_source TEXT NOT NULL DEFAULT '' CHECK (commit_source IN ('', 'manual', 'llm', 'ci'))
) STRICT;

CREATE INDEX IF NOT EXISTS records_of_a_run ON records (run_id, seq);
CREATE INDEX IF NOT EXISTS records_by_kind ON records (kind, seq);
