"""P04: the server dies without warning, several times, under load; nothing is lost, doubled or stuck."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tallystick import Tally
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
