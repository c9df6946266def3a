"""What the pages of the dashboard read: stretches of indexes, however many jobs there are, on both stores."""

from __future__ import annotations

import re

import psycopg
import pytest

from tallystick import Tally
from tallystick.store.postgres import statements as postgres_statements
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.sqlite import statements as sqlite_statements
from tests.postgres.subject import fresh_schema
from tests.surfaces.dashboard.visiting import url_in

JOBS = 5_000
NEWEST, TENANT = "~", "default"
STATES = '["QUEUED"]'
FILTERS = (None, None, None, None, 0, None, None, "label")
WITHIN = ("", NEWEST, 50)
# What each page asks the store for, with a question that few jobs answer.
READS = {
    "job_floor": (NEWEST, 10_000),
    "tag_floor": ("red", NEWEST, 10_000),
    "jobs_found": (TENANT, STATES, *FILTERS, *WITHIN),
    "count_found": (TENANT, STATES, *FILTERS, *WITHIN),
    "jobs_found_tagged": (TENANT, STATES, *FILTERS, *WITHIN, "red"),
    "count_found_tagged": (TENANT, STATES, *FILTERS, *WITHIN, "red"),
    "kept": (TENANT, "key", "order-7"),
    "held_jobs": (TENANT, NEWEST, 50),
    "dead": (TENANT, None, NEWEST, 50),
    "open_effects_page": (TENANT, "", "", 50),
    "waiting_queues": (),
    "queue_depth": ("default", 1, 100_000),
    "held_counts": (100_000,),
    "outbox_depth": (1, 100_000),
    "running_longest": (50,),
    "acts": ("job", "one", 9, 20),
    "all_acts": ('["queue"]', 9, 20),
}
# Tables that grow with the jobs.
LARGE = (
    "jobs",
    "j",
    "events",
    "steps",
    "messages",
    "attempts",
    "job_tags",
    "acts",
    "effect_keys",
    "idempotency",
)


def plans_on_sqlite(app: Tally) -> dict[str, str]:
    with app.connect() as db:
        return {
            name: "\n".join(
                row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sqlite_statements.sql(name)}", values)
            )
            for name, values in READS.items()
        }


def plans_on_postgres(url: str, dsn: str) -> dict[str, str]:
    settings = parse_address(url).settings
    plans = {}
    with psycopg.connect(dsn, autocommit=True, options=settings, cursor_factory=psycopg.RawCursor) as db:
        db.execute("ANALYZE")
        for name, values in READS.items():
            rows = db.execute(b"EXPLAIN (COSTS OFF) " + postgres_statements.sql(name), values).fetchall()
            plans[name] = "\n".join(row[0] for row in rows)
    return plans


def fill(app: Tally) -> None:
    @app.workflow
    def flow(number: int) -> None: ...

    flow.submit_many([(number,) for number in range(JOBS)])
    flow.opts(tags=["red"]).submit(1)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_page_reads_a_table_of_jobs_from_its_beginning(store, tmp_path, request):
    server = request.getfixturevalue("server") if store == "postgres" else None
    url = url_in(tmp_path) if server is None else server.url(schema=fresh_schema())
    app = Tally(url)
    fill(app)
    if server is None:
        # That index holds jobs that wait for a person, and no others.
        whole = rf"\bSCAN ({'|'.join(LARGE)})\b(?! USING INDEX jobs_held)"
        plans = plans_on_sqlite(app)
    else:
        plans, whole = plans_on_postgres(url, server.dsn), rf"Seq Scan on ({'|'.join(LARGE)})\b"
    app.close()
    assert {name: plan for name, plan in plans.items() if re.search(whole, plan)} == {}
