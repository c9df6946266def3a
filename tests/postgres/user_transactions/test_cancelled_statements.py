"""A tx whose statement was cancelled, or whose server lost patience, is too long only if its time is over."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tallystick import Tally, Tx
from tallystick.errors import JobFailed, TxTooLong
from tallystick.store.api import RecordStep, Transaction
from tallystick.testing.conformance.drafts import held_job, step
from tests.patience import let_time_pass, wait_until
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema

SECONDS = 20

SLEEPING = "SELECT pid FROM pg_stat_activity WHERE query = %s AND state = 'active'"
CANCEL = "SELECT pg_cancel_backend(%s)"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_statement_that_a_person_cancels_is_run_again(server: Server, is_async: bool) -> None:
    schema = fresh_schema()
    app = Tally(server.url(schema=schema))
    sleeps = f"SELECT pg_sleep(600) AS {schema}"
    runs: list[int] = []

    @app.tx
    def note(db: Tx) -> int:
        runs.append(1)
        if len(runs) == 1:
            db.execute(sleeps)
        return len(runs)

    if is_async:

        @app.workflow(attempts=1)
        async def flow() -> int:
            return await note.aio()
    else:

        @app.workflow(attempts=1)
        def flow() -> int:
            return note()

    with psycopg.connect(server.dsn, autocommit=True) as person, app.worker():
        job = flow.submit()
        wait_until(lambda: person.execute(SLEEPING, [sleeps]).fetchall(), "it sleeps on the server")
        for (pid,) in person.execute(SLEEPING, [sleeps]).fetchall():
            person.execute(CANCEL, [pid])
        assert job.result(SECONDS) == 2
    assert [event.name for event in job.history()] == ["submit", "claim", "tx", "return"]
    app.close()


def test_a_server_that_loses_patience_before_the_time_is_over_is_asked_again(
    subject: PostgresSubject,
) -> None:
    """As after a delay in the network: the server has counted what the body did not use."""
    held = held_job(subject.store, subject.clock)
    runs: list[int] = []

    def body(db: Transaction) -> RecordStep:
        runs.append(1)
        if len(runs) == 1:
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 50")
            let_time_pass(0.3)
        subject.put_effect(db, f"run {len(runs)}")
        return step(held, subject.clock)

    assert isinstance(subject.store.run_tx(held.fence, body, 10_000, 0), RecordStep)
    assert subject.effects() == ["run 2"]


def test_a_statement_that_is_cancelled_because_the_time_is_over_is_not_run_again(
    subject: PostgresSubject,
) -> None:
    held = held_job(subject.store, subject.clock)
    runs: list[int] = []

    def body(db: Transaction) -> RecordStep:
        runs.append(1)
        subject.spin(db)
        raise AssertionError("the server should have cancelled it")

    with pytest.raises(TxTooLong):
        subject.store.run_tx(held.fence, body, 200, 0)
    assert runs == [1]


def test_a_limit_of_the_body_itself_fails_the_step_and_not_the_store(server: Server) -> None:
    app = Tally(server.url(schema=fresh_schema()))
    ran = threading.Event()

    @app.tx
    def note(db: Tx) -> None:
        ran.set()
        db.execute("SET LOCAL statement_timeout = 20")
        db.execute("SELECT pg_sleep(600)")

    @app.workflow
    def flow() -> None:
        note()

    with app.worker():
        job = flow.submit()
        with pytest.raises(JobFailed, match="statement timeout"):
            job.result(SECONDS)
    assert ran.is_set()
    app.close()
