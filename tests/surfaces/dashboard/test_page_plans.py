"""What the pages of the dashboard read: stretches of indexes, however many jobs there are, on both stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import apsw
import psycopg
import pytest

from tallystick import Tally
from tallystick.dashboard.pages.job import TABS
from tallystick.store.postgres import statements as postgres_statements
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.talking import Reader
from tallystick.store.sqlite.store import SqliteStore
from tests.postgres.subject import fresh_schema
from tests.surfaces.dashboard.visiting import Site, url_in, visiting

JOBS = 5_000
PAGES = (
    "/overview",
    "/overview?period=7d",
    "/jobs",
    "/jobs?state=QUEUED&workflow=flow&queue=default&error=label",
    "/jobs?error=label",
    "/jobs?dead=yes",
    "/jobs?until=2026-01-01T00:00",
    "/jobs?tag=red&state=QUEUED",
    "/jobs?key=order-7",
    "/jobs?parent=01a1",
    "/jobs?held=yes",
    "/jobs?since=2026-01-01T00:00",
    "/bulk/cancel?state=QUEUED&tag=red",
    "/bulk/retry?workflow=flow",
    "/bulk/resume?workflow=flow",
    "/attention",
    "/effects",
    "/effects?key=charge:7",
    "/effects?show=ended&key=charge:7",
    "/outbox",
    "/outbox?show=dead",
    "/queues",
    "/workers",
    "/schedules",
    *(f"/jobs/{{job}}?tab={tab}&show=1&raw=1" for tab in TABS),
)
# Tables that grow with the jobs.
LARGE = (
    *("jobs", "j", "events", "steps", "messages", "attempts", "job_tags", "acts", "effect_keys"),
    *("idempotency", "outbox", "job_values", "pruned"),
)

# Indexes that hold what is open, and no more: jobs that wait for a person, leases, effects without an answer,
# directives that are not out (a tenant has 100 commands in flight unless told) and dead ones.
OPEN = (
    *("jobs_held(_as)?", "attempts_one_live", "effect_keys_open"),
    *("outbox_to_publish", "outbox_of_service", "outbox_of_tenant", "outbox_never_sent"),
)

Asked = dict[str, Sequence[object]]


def fill(app: Tally) -> str:
    @app.workflow
    def flow(number: int) -> None: ...

    flow.submit_many([(number,) for number in range(JOBS)])
    job = flow.opts(tags=["red"], idempotency_key="order-7").submit(1)
    job.pause(by="ann")
    return job.id


def visited(app: Tally, asked: Asked, note: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Visit every page, and note what each asks the store for."""
    job = fill(app)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        with pytest.MonkeyPatch.context() as patched:
            note(patched)
            for page in PAGES:
                answer = await visitor.get(page.format(job=job))
                assert answer.status_code == 200, (page, answer.text)

    visiting(app, test)
    assert len(asked) > 20


def plans_on_sqlite(folder) -> dict[str, str]:
    """Return the plan of each statement that the pages ran."""
    asked: Asked = {}
    select = SqliteStore._select

    def noting(store: SqliteStore, statement: str, parameters: Sequence[object]) -> list[Any]:
        asked[statement] = parameters
        return select(store, statement, parameters)

    visited(Tally(url_in(folder)), asked, lambda patched: patched.setattr(SqliteStore, "_select", noting))
    db = apsw.Connection(str(folder / "books.db"))
    reads = {text: values for text, values in asked.items() if "SELECT" in text}
    return {
        text: "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", values))
        for text, values in reads.items()
    }


def plans_on_postgres(server) -> dict[str, str]:
    url, asked, rows = server.url(schema=fresh_schema()), Asked(), Reader.rows

    def noting(reads: Any, name: str, parameters: Sequence[object] = ()) -> list[Any]:
        asked[name] = parameters
        return rows(reads, name, parameters)

    visited(Tally(url), asked, lambda patched: patched.setattr(Reader, "rows", noting))
    settings = parse_address(url).settings
    plans = {}
    with psycopg.connect(
        server.dsn, autocommit=True, options=settings, cursor_factory=psycopg.RawCursor
    ) as db:
        db.execute("ANALYZE")
        for name, values in asked.items():
            told = db.execute(b"EXPLAIN (COSTS OFF) " + postgres_statements.sql(name), values).fetchall()
            plans[name] = "\n".join(row[0] for row in told)
    return plans


# A walk by the identifiers of all jobs that is open at one end; to look for the end of a window reads no job.
UNBOUNDED = {
    "sqlite": r"SEARCH (jobs|j) USING INDEX sqlite_autoindex_jobs_1 \(job_id<\?\)",
    "postgres": r"Index Scan.* using jobs_pkey on jobs.*\n\s+Index Cond: \(\(?job_id < [^()]*\)?\)\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_page_reads_a_table_of_jobs_from_its_beginning(store, tmp_path, request):
    if store == "sqlite":
        whole = rf"\bSCAN ({'|'.join(LARGE)})\b(?! USING (COVERING )?INDEX ({'|'.join(OPEN)})\b)"
        plans = plans_on_sqlite(tmp_path)
    else:
        plans = plans_on_postgres(request.getfixturevalue("server"))
        whole = rf"Seq Scan on ({'|'.join(LARGE)})\b"
    assert {name: plan for name, plan in plans.items() if re.search(whole, plan)} == {}
    assert {name: plan for name, plan in plans.items() if re.search(UNBOUNDED[store], f"{plan}\n")} == {}
