"""P05 and P06: a real standby takes over from a real primary, under load and in the middle of everything."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tallystick import Tally
from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.errors import OutcomeUnknown, StoreError, StoreReadOnly
from tallystick.store.postgres.store import PostgresStore
from tests.patience import let_time_pass, wait_until
from tests.postgres.server import Server, make_server, make_standby
from tests.postgres.shop import LIVE, make_effects, shop_on

JOBS = 60
CLOCK = SystemClock()


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A primary and a standby that follows it, both of this test's own."""
    primary = make_server(fsync=False)
    try:
        standby = make_standby(primary)
        try:
            yield primary, standby
        finally:
            standby.remove()
    finally:
        primary.remove()


def both(pair: tuple[Server, Server]) -> str:
    """Return an address that names both; the one that can be written to is taken."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in pair)
    return f"postgresql://tally@{hosts}/postgres?schema=shop&connect_timeout=2"


def told(server: Server, *statements: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def answer(server: Server, query: str) -> object:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def synchronous(primary: Server) -> None:
    """Let the primary acknowledge nothing before its standby has it."""
    told(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    query = "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication"
    wait_until(lambda: answer(primary, query) == "sync")


@pytest.mark.timeout(180)
def test_with_a_synchronous_standby_a_failover_under_load_loses_and_doubles_nothing(
    pair: tuple[Server, Server],
) -> None:
    primary, standby = pair
    synchronous(primary)
    app = Tally(both(pair))
    done = threading.Semaphore(0)

    checkout = shop_on(app, done.release)
    make_effects(app)

    def submit(n: int) -> str:
        """Repeat until it is acknowledged: with a key that is harmless, whatever became of the first try."""
        while True:
            try:
                return checkout.opts(idempotency_key=f"order-{n}").submit(n).id
            except (StoreError, OutcomeUnknown):
                let_time_pass(0.05)

    acknowledged = [submit(n) for n in range(JOBS // 2)]
    with app.worker(concurrency=8, lease="2s"):
        for _ in range(JOBS // 6):
            assert done.acquire(timeout=60)
        later: list[str] = []
        submitting = threading.Thread(target=lambda: later.extend(map(submit, range(JOBS // 2, JOBS))))
        submitting.start()
        primary.stop("immediate")
        standby.promote()
        submitting.join(90)
        results = [app.job(job_id).result(90) for job_id in [*acknowledged, *later]]
    assert results == [n * 5 for n in range(JOBS)]
    assert answer(standby, "SELECT count(*) FROM effects") == JOBS
    assert answer(standby, "SELECT count(DISTINCT n) FROM effects") == JOBS
    assert answer(standby, "SELECT count(*) FROM shop.jobs") == JOBS
    live = f"SELECT count(*) FROM shop.attempts WHERE {LIVE}"
    assert answer(standby, live) == 0
    assert audit(app.runtime().store).findings == []
    app.close()


@pytest.mark.timeout(120)
def test_an_asynchronous_standby_may_lose_what_was_acknowledged_and_its_books_are_whole(
    pair: tuple[Server, Server],
) -> None:
    """What the guide says: the last transactions may be gone, and a key makes it safe to ask again."""
    primary, standby = pair
    app = Tally(both(pair))

    @app.workflow
    def flow(n: int) -> int:
        return n + 1

    kept = flow.opts(idempotency_key="kept").submit(1)
    position = answer(primary, "SELECT pg_current_wal_lsn()::text")
    wait_until(lambda: bool(answer(standby, f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")))
    standby.stop("fast")
    lost = flow.opts(idempotency_key="lost").submit(2)
    primary.stop("immediate")
    standby.start()
    standby.promote()
    store = app.runtime().store
    assert store.job(kept.id) is not None
    assert store.job(lost.id) is None
    again = flow.opts(idempotency_key="lost").submit(2)
    assert again.created
    with app.worker():
        assert [kept.result(30), again.result(30)] == [2, 3]
    assert audit(store).findings == []
    app.close()


def test_a_real_replica_is_refused_and_the_primary_beside_it_is_found(pair: tuple[Server, Server]) -> None:
    """P06: what a replica says may be old, so no decision is made on one."""
    primary, standby = pair
    PostgresStore(primary.url(schema="shop"), CLOCK).close()
    with pytest.raises(StoreReadOnly):
        PostgresStore(standby.url(schema="shop", target_session_attrs="any"), CLOCK)
    with pytest.raises(StoreError, match=r"read-only|replica"):
        PostgresStore(standby.url(schema="shop"), CLOCK)
    store = PostgresStore(both((standby, primary)), CLOCK)
    assert store.counts() == {}
    store.close()
