"""A remote worker that begins again asks for copies: 100,000 directives of its past are not read for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tallystick import RemoteStep, Tally
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.statements import sql as postgres_sql
from tallystick.store.sqlite.statements import sql as sqlite_sql
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.remote_hand import RemoteHand
from tests.postgres.subject import PostgresSubject

PAST = 100_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
    f"WHERE n < {PAST}) SELECT n FROM n",
    "postgres": f"SELECT generate_series(1, {PAST}) AS n",
}
STEPS = """
INSERT INTO steps (job_id, name, kind, state, attempt_no, created_at, completed_at, step_index)
SELECT 'past-' || n, 'ocr', 'protocol', 'CANCELLED', 1, 1, 2, 0 FROM ({numbers}) AS numbers
"""
DIRECTIVES = """
INSERT INTO outbox (outbox_id, tenant_id, job_id, step_id, attempt_no, lease_id, state, topic, payload,
                    created_at, updated_at, taken_by, service)
SELECT 'past-' || n || ':ocr:1', 'acme', 'past-' || n, 'ocr', 1, 'l', 'PENDING', 't', '{{}}', 1, 1, 'w', 'ocr'
  FROM ({numbers}) AS numbers
"""
COMMAND = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "in",
    "output_ref": "out",
    "payload": {},
    "schema_version": "v1",
}


@contextmanager
def sqlite_books(request: pytest.FixtureRequest) -> Any:
    tally = Tally(f"sqlite:///{request.getfixturevalue('tmp_path')}/books.db")
    store = tally.runtime().store
    assert isinstance(store, SqliteStore)
    writer = store._writer
    yield tally, lambda text: list(writer.execute(text)), _sqlite_plan(writer)
    tally.close()


def _sqlite_plan(writer: Any) -> Callable[[str, tuple[object, ...]], str]:
    return lambda name, given: "\n".join(
        row[3] for row in writer.execute(f"EXPLAIN QUERY PLAN {sqlite_sql(name)}", given)
    )


@contextmanager
def postgres_books(request: pytest.FixtureRequest) -> Any:
    subject = PostgresSubject(request.getfixturevalue("server"))
    tally = Tally(subject.url)
    tally.runtime()
    raw = psycopg.connect(
        subject.dsn,
        autocommit=True,
        options=parse_address(subject.url).settings,
        cursor_factory=psycopg.RawCursor,
    )

    def plan(name: str, given: tuple[object, ...]) -> str:
        rows = raw.execute(
            b"EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF) " + postgres_sql(name), given
        ).fetchall()
        return "\n".join(row[0] for row in rows)

    yield tally, raw.execute, plan
    raw.close()
    tally.close()
    subject.close()


@pytest.mark.long
@pytest.mark.parametrize("books", [sqlite_books, postgres_books], ids=["sqlite", "postgres"])
def test_copies_are_found_among_a_hundred_thousand_directives_of_the_past(books, request):
    kind = "sqlite" if books is sqlite_books else "postgres"
    with books(request) as (tally, run, plan):
        tally.protocol("scan", request_types=["scan"], steps=[RemoteStep("ocr", service="ocr")])
        run(STEPS.format(numbers=NUMBERS[kind]))
        run(DIRECTIVES.format(numbers=NUMBERS[kind]))
        run("UPDATE outbox SET state = 'SENT', sent_at = 2")
        run("ANALYZE")
        job = tally.command(COMMAND)
        taken = RemoteHand(tally, "ocr", worker="w").take()
        store = tally.runtime().store
        assert [row.job_id for row in store.given_directives("w", 8)] == [job.id]
        shown = plan("given_directives", ("w", store.now(), 8))
        assert "steps_awaiting_ack" in shown, shown
        assert "outbox_of_job" in shown, shown
        assert not {"SCAN o", "Seq Scan"} & set(shown.splitlines()), shown
        taken.ack()
        assert store.given_directives("w", 8) == []
        assert json.loads(taken.row.payload)["jobId"] == job.id
