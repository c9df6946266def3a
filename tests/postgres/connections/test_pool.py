"""Connections on loan: nobody waits for himself, nobody waits for ever, and a dead one is nobody's error."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from tallystick.errors import StoreBusy
from tallystick.store.api import RecordStep, Transaction
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.server.connection import Eras
from tallystick.store.postgres.server.pool import CONNECTIONS_MAX, IDLE_MAX, Pool
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import held_job, step
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject

SECONDS = 30
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND pid = pg_backend_pid()"


@pytest.mark.timeout(60)
def test_bodies_that_all_read_on_a_second_connection_all_come_to_their_end(subject: PostgresSubject) -> None:
    store, clock = subject.store, subject.clock
    jobs = [held_job(store, clock) for _ in range(CONNECTIONS_MAX)]
    inside = threading.Barrier(CONNECTIONS_MAX)

    def run(number: int) -> RecordStep:
        def body(db: Transaction) -> RecordStep:
            inside.wait(SECONDS)
            with store.connect() as reading:
                ((found,),) = reading.execute("SELECT %s::int", [number])
            subject.put_effect(db, f"{found:02d}")
            return step(jobs[number], clock)

        return store.run_tx(jobs[number].fence, body, 20_000, 0)

    with ThreadPoolExecutor(CONNECTIONS_MAX) as threads:
        assert len(list(threads.map(run, range(CONNECTIONS_MAX)))) == CONNECTIONS_MAX
    assert subject.effects() == [f"{number:02d}" for number in range(CONNECTIONS_MAX)]


def test_who_finds_every_connection_in_use_for_too_long_is_told(server: Server) -> None:
    pool = Pool(parse_address(server.url()), Eras(), connections_max=1, wait_seconds=0.01)

    def borrow() -> None:
        with pool.connection(lambda _connection: None):
            raise AssertionError("there was none left")

    with (
        pool.connection(lambda _connection: None),
        ThreadPoolExecutor(1) as thread,
        pytest.raises(StoreBusy, match="all 1 connections"),
    ):
        thread.submit(borrow).result(SECONDS)
    with pool.connection(lambda _connection: None) as (connection, _begun):
        assert not connection.closed, "the place is free again"
    pool.close()


def fill_and_kill(subject: PostgresSubject, store: PostgresStore) -> None:
    """Leave as many idle connections as are kept, all of them dead."""
    with ExitStack() as open_now:
        loans = [open_now.enter_context(store.connect()) for _ in range(IDLE_MAX)]
        pids = [pid for loan in loans for (pid,) in loan.execute("SELECT pg_backend_pid()")]
    for pid in pids:
        assert subject.by_hand.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)


def test_idle_connections_that_died_are_nobodys_error(subject: PostgresSubject) -> None:
    """After a restart, or a firewall that forgets: nothing was begun on them, so nothing was lost."""
    store = subject.store
    fill_and_kill(subject, store)
    with store.connect() as db:
        assert db.execute("SELECT 1") == [(1,)]
    fill_and_kill(subject, store)
    with store.transaction() as db:
        subject.put_effect(db, "once")
    held = held_job(store, subject.clock)
    fill_and_kill(subject, store)

    def body(db: Transaction) -> RecordStep:
        subject.put_effect(db, "tx")
        return step(held, subject.clock)

    store._lending.run_tx(held.fence, body, 10_000, 0, tries_max=1)
    assert subject.effects() == ["once", "tx"]


def test_a_user_without_a_search_path_has_transactions_too(subject: PostgresSubject) -> None:
    store = PostgresStore(f"{subject.url}&options=-csearch_path%3D", subject.clock)
    with store.transaction() as db:
        assert db.execute("SELECT count(*) FROM stale_reports") == [(0,)], "ours can be read by name"
    with store.connect() as db:
        assert db.execute("SHOW search_path") == [(subject.schema,)]
    store.close()


def test_a_connection_on_loan_for_reading_refuses_to_write(subject: PostgresSubject) -> None:
    with pytest.raises(Exception, match=r"app.transaction\(\)"), subject.store.connect() as db:
        subject.put_effect(db, "never")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction), subject.store.connect() as db:
        db.execute("SET TRANSACTION READ WRITE")
    assert subject.effects() == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMPORARY TABLE leftover AS SELECT 1 AS n",
        "CREATE LOCAL TEMP TABLE leftover (n INTEGER)",
        "CREATE GLOBAL TEMPORARY TABLE leftover (n INTEGER)",
        "CREATE /* a */ TEMP -- b\n VIEW leftover AS SELECT 1",
        "CREATE OR REPLACE TEMP VIEW leftover AS SELECT 1",
        "CREATE TABLE pg_temp.leftover (n INTEGER)",
        "SELECT 1 AS n INTO TEMP leftover",
        "SELECT 1 AS n INTO LOCAL TEMPORARY TABLE leftover",
        "DO $$ BEGIN EXECUTE concat('CREATE TE', 'MP TABLE leftover (n INTEGER)'); END $$",
        ";SET application_name = 'leftover'",
        "SELECT pg_advisory_lock_shared(42)",
        "SELECT pg_try_advisory_lock(42)",
        "SELECT pg_try_advisory_lock_shared(42)",
    ],
)
def test_what_outlives_a_transaction_is_found_by_nobody_else(
    subject: PostgresSubject, statement: str
) -> None:
    with subject.store.transaction() as db:
        db.execute(statement)
    for _ in range(IDLE_MAX + 1):
        with subject.store.transaction() as db:
            assert db.execute("SELECT to_regclass('leftover')") == [(None,)]
            assert db.execute("SELECT current_setting('application_name')") == [("tallystick",)]
            assert db.execute(HELD) == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO effects (value) VALUES ('set temp')",
        "SELECT value AS temp FROM effects",
        "SELECT pg_advisory_xact_lock(42)",
        "CREATE TABLE templates (n INTEGER)",
    ],
)
def test_what_ends_with_the_transaction_costs_no_connection(subject: PostgresSubject, statement: str) -> None:
    asked = "SELECT pg_backend_pid()"
    with subject.store.transaction() as db:
        before = db.execute(asked)
    with pytest.raises(ZeroDivisionError), subject.store.transaction() as db:  # noqa: PT012 (one block)
        db.execute(statement)
        raise ZeroDivisionError
    with subject.store.transaction() as db:
        assert db.execute(asked) == before
