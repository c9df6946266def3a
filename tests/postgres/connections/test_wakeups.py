"""P11, P12 and rest: hearing of work, surviving silence, and doing nothing when there is nothing to do."""

from __future__ import annotations

import re
import threading
import time

import psycopg
import pytest

from tallystick import Tally
from tallystick.clock import SystemClock
from tallystick.store.postgres.server import listener
from tallystick.store.postgres.server.connection import AnsweringConnection
from tallystick.store.postgres.statements import sql
from tallystick.testing.conformance.drafts import check_chain, claim, claimed, done, held_job, step, suspects
from tests.patience import let_time_pass, wait_until
from tests.postgres.proxy import Proxy
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema

CLOCK = SystemClock()


@pytest.fixture
def pair(server: Server):
    """A Tally that works and one that only submits, on the same schema."""
    url = server.url(schema=fresh_schema())
    here, there = Tally(url), Tally(url)
    for tally in (here, there):
        tally.workflow(name="flow")(_answer)
    yield here, there
    here.close()
    there.close()


def _answer(n: int) -> int:
    return n + 1


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, object]]:
    """Return a list that grows with every statement that any connection of a store sends, and when."""
    sent: list[tuple[float, object]] = []
    original = AnsweringConnection.execute

    def execute(connection: AnsweringConnection, *arguments: object, **options: object) -> object:
        sent.append((time.monotonic(), arguments[0]))
        return original(connection, *arguments, **options)

    monkeypatch.setattr(AnsweringConnection, "execute", execute)
    return sent


def listening(server: Server, schema: str) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE query = %s"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return [pid for (pid,) in connection.execute(query, [f'LISTEN "tallystick_{schema}"'])]


def test_a_dead_listener_is_replaced_and_nothing_is_missed(server: Server, pair) -> None:
    here, there = pair
    schema = re.search(r"schema=(\w+)", here.url)[1]
    with here.worker():
        wait_until(lambda: len(listening(server, schema)) == 1)
        (pid,) = listening(server, schema)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert there.workflows["flow", ""].submit(1).result(15) == 2
        wait_until(lambda: listening(server, schema) not in ([], [pid]))
        assert there.workflows["flow", ""].submit(2).result(15) == 3


def test_polling_finds_work_when_nobody_can_listen(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The safety net alone: a pooler in transaction mode cannot listen."""
    monkeypatch.setattr(listener, "LOOK_SECONDS_DEAF", 0.2)
    url = server.url(schema=fresh_schema(), pooler="transaction")
    here, there = Tally(url), Tally(url)
    for tally in (here, there):
        tally.workflow(name="flow")(_answer)
    with here.worker():
        assert there.workflows["flow", ""].submit(1).result(15) == 2
    here.close()
    there.close()


def test_a_peer_that_falls_silent_is_given_up_and_replaced(server: Server) -> None:
    """P12: half-open TCP: no error ever comes, so the store must not wait for one."""
    proxy = Proxy(server)
    subject = PostgresSubject(server)
    url = subject.url.replace(f":{server.port}/", f":{proxy.port}/")
    store = type(subject.store)(
        f"{url}&answer=1s&connect_timeout=2&sslmode=disable&gssencmode=disable", CLOCK
    )
    held = held_job(store, CLOCK)
    outcomes: list[object] = []
    proxy.silent.set()
    flush = threading.Thread(target=lambda: outcomes.extend(store.apply([(step(held, CLOCK),)])), daemon=True)
    flush.start()
    let_time_pass(1.2)
    proxy.silent.clear()
    flush.join(30)
    assert outcomes == [None]
    done(store, step(held, CLOCK, "next"))
    check_chain(store.history(held.fence.job_id))
    store.close()
    subject.close()
    proxy.close()


def test_ten_idle_workers_cause_less_than_five_statements_a_second_and_no_open_transaction(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement that any of our connections sends in six seconds, sweeps and looks included."""
    sent = counted(monkeypatch)
    schema = fresh_schema()
    url = server.url(schema=schema, application_name=schema)
    tallies = [Tally(url) for _ in range(10)]
    for tally in tallies:
        tally.workflow(name="flow")(_answer)
    workers = [tally.worker() for tally in tallies]
    for worker in workers:
        worker.__enter__()
    try:
        wait_until(lambda: len(listening(server, schema)) == 10)
        assert tallies[0].workflows["flow", ""].submit(1).result(20) == 2
        # On a machine that is busy it takes a while until all of them have heard of that job.
        looks = {sql("expired"), sql("next_tick")}
        wait_until(
            lambda: all(said in looks for at, said in list(sent) if at > time.monotonic() - 2), "they rest"
        )
        before = len(sent)
        let_time_pass(6.0)
        rate = (len(sent) - before) / 6.0
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND xact_start IS NOT NULL"
            )
            open_transactions = connection.execute(query, [schema]).fetchone()
    finally:
        for worker in workers:
            worker.__exit__(None, None, None)
        for tally in tallies:
            tally.close()
    assert rate < 5
    assert open_transactions == (0,)


def test_a_suspect_that_another_claim_is_taking_does_not_hide_the_next_one(subject: PostgresSubject):
    """Who finds nothing because of it hears of nothing more: the other claim takes that one only."""
    store, clock = subject.store, subject.clock
    first, second = suspects(store, clock, 2)
    with subject.by_hand.transaction():
        subject.by_hand.execute("SELECT 1 FROM jobs WHERE job_id = %s FOR NO KEY UPDATE", (first,))
        assert [job.fence.job_id for job in claimed(store, claim(2))] == [second]
    assert [job.fence.job_id for job in claimed(store, claim(2))] == [first]
