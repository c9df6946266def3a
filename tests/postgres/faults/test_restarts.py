"""P04: the server dies without warning, several times, under load; nothing is lost, doubled or stuck."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tallystick import Tally
from tallystick.errors import OutcomeUnknown
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.server.commit_outcome import Fate, fate
from tallystick.store.postgres.server.connection import connect
from tests.postgres.server import Server, make_server
from tests.postgres.shop import LIVE, make_effects, shop_on

JOBS = 120


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of this test's own, which really waits for its disk."""
    server = make_server(fsync=True)
    yield server
    server.remove()


@pytest.mark.timeout(180)
def test_immediate_restarts_under_load_lose_nothing_and_double_nothing(own_server: Server) -> None:
    app = Tally(own_server.url(schema="shop"))
    done = threading.Semaphore(0)

    checkout = shop_on(app, done.release)
    make_effects(app)
    jobs = checkout.submit_many([(n,) for n in range(JOBS)])
    with app.worker(concurrency=8, lease="2s"):
        for _ in range(3):
            for _ in range(JOBS // 5):
                assert done.acquire(timeout=60)
            own_server.restart()
        results = [job.result(90) for job in jobs]
    assert results == [n * 5 for n in range(JOBS)]
    with psycopg.connect(own_server.dsn) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT n) FROM effects").fetchone() == (
            JOBS,
            JOBS,
        )
        query = "SELECT DISTINCT state, semaphore, start_ledger FROM shop.jobs"
        assert connection.execute(query).fetchall() == [("SUCCEEDED", 0, 111_100_000_001)]
        live = f"SELECT count(*) FROM shop.attempts WHERE {LIVE}"
        assert connection.execute(live).fetchone() == (0,)
    app.close()


def test_who_only_reads_does_not_notice_that_the_server_was_away(own_server: Server) -> None:
    app = Tally(own_server.url(schema="shop"))
    job = shop_on(app).submit(1)
    assert job.state() == "QUEUED"
    own_server.stop()
    back = threading.Timer(0.3, own_server.start)
    back.start()
    assert job.state() == "QUEUED", "asked while nobody answered"
    back.join()
    app.close()


def test_a_number_that_a_crashed_server_gives_out_again_is_not_taken_for_the_lost_transaction(
    own_server: Server,
) -> None:
    """P04: PostgreSQL logs a number with what its transaction writes first, and so may give one out twice.

    Then the status of the number is that of another transaction; only what was written can tell.
    """
    app = Tally(own_server.url(schema="shop"))
    checkout = shop_on(app)
    job = checkout.submit(1)
    (durable,) = job.history()
    app.close()
    there = [(job.id, durable.n, bytes.fromhex(durable.hash))]
    missing = [*there, (job.id, 2, b"lost")]
    address = parse_address(own_server.url(schema="shop"))
    before = connect(address)
    before.execute("BEGIN")
    ((lost,),) = before.execute("SELECT pg_current_xact_id()::text").fetchall()
    own_server.restart()
    with psycopg.connect(own_server.dsn, autocommit=True) as other:
        numbers = []
        while lost not in numbers:
            numbers += [number for (number,) in other.execute("SELECT pg_current_xact_id()::text")]
            assert len(numbers) < 1_000, "the number was not given out again"
    assert fate(address, lost, before.facts, missing) is Fate.ABORTED
    assert fate(address, lost, before.facts, there) is Fate.COMMITTED
    with pytest.raises(OutcomeUnknown):
        fate(address, lost, before.facts, [])
    before.close()
