"""A temporary table of the user's hides nothing of ours, whatever he calls it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tallystick import Tally, Tx
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

TABLES = ("jobs", "events", "steps", "attempts", "idempotency", "job_tags", "stale_reports")


@pytest.fixture
def schema() -> str:
    return fresh_schema()


@pytest.fixture(params=["", "&pooler=transaction"], ids=["direct", "behind a pooler"])
def app(server: Server, schema: str, request: pytest.FixtureRequest):
    tally = Tally(server.url(schema=schema) + request.param)
    yield tally
    tally.close()


def hide(execute: Callable[[str], object], schema: str) -> None:
    """Make a temporary table with the name and the columns of each of ours."""
    for table in TABLES:
        execute(f"CREATE TEMP TABLE {table} ON COMMIT DROP AS SELECT * FROM {schema}.{table} LIMIT 0")


def test_a_submission_beside_temporary_copies_of_our_tables_is_durable(
    app: Tally, server: Server, schema: str
) -> None:
    @app.workflow
    def flow(n: int) -> int:
        return n + 1

    assert flow.opts(idempotency_key="k").submit(0).created
    with app.transaction() as db:
        hide(db.execute, schema)
        inside = flow.opts(within=db, tags=["hidden"], idempotency_key="inside").submit(1)
        assert not flow.opts(within=db, idempotency_key="k").submit(0).created, "the key was not looked up"
    with psycopg.connect(server.dsn) as connection:
        hide(connection.execute, schema)
        beside = flow.opts(within=connection, tags=["hidden"]).submit(2)
        connection.commit()
    assert {job.id for job in app.jobs(tag="hidden")} == {inside.id, beside.id}
    with app.worker():
        assert [inside.result(20), beside.result(20)] == [2, 3]


def test_a_body_that_makes_temporary_copies_of_our_tables_records_its_step(app: Tally, schema: str) -> None:
    @app.tx
    def copy(db: Tx, n: int) -> int:
        hide(db.execute, schema)
        return n

    @app.workflow(attempts=1)
    def flow(n: int) -> int:
        return copy(n)

    with app.worker():
        assert flow.submit(1).result(20) == 1
