"""E2: what was acknowledged is gone, and its worker lives on: it does what is not recorded again.

An asynchronous standby takes over, or a server comes back that had not synced. The guide says that steps of
which the new server knows nothing run again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest

from tallystick import Tally, Tx
from tallystick.app.api.workflows import Workflow
from tallystick.engine.audit import audit
from tallystick.errors import StoreError
from tallystick.testing.remote_hand import Heard, HeldDirective, RemoteHand
from tests.patience import wait_until
from tests.postgres.server import Server, make_server, make_standby

STEPS = 6
LOST_FROM = 3
NOT_SYNCED = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}


class Gates:
    """Lets a workflow go on step by step, and remembers where it came by and which steps were run."""

    def __init__(self) -> None:
        self.open = threading.Semaphore(0)
        self.arrived: list[int] = []
        self.runs: list[int] = []

    def arrive(self, n: int) -> None:
        """Wait before step `n` until the test lets it go on."""
        self.arrived.append(n)
        assert self.open.acquire(timeout=60)


def told(server: Server, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


def address_of(*servers: Server) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://tally@{hosts}/postgres?schema=shop&connect_timeout=2"


@pytest.fixture
def primary() -> Iterator[Server]:
    server = make_server(fsync=False, settings=NOT_SYNCED)
    yield server
    server.remove()


@pytest.fixture
def standby(primary: Server) -> Iterator[Server]:
    server = make_standby(primary)
    yield server
    server.remove()


def lose_by_failover(primary: Server, standby: Server) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return how to take the standby away, and how to let it take over without what came since."""

    def leave_behind() -> None:
        told(primary, "CHECKPOINT")  # so that all of it is sent
        ((position,),) = told(primary, "SELECT pg_current_wal_flush_lsn()::text")
        behind = f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
        wait_until(lambda: told(standby, behind) == [(True,)], "a standby that has caught up")
        standby.stop("fast")

    def take_over() -> None:
        primary.stop("immediate")
        standby.start()
        standby.promote()

    return leave_behind, take_over


def flow_on(app: Tally, kind: str, gates: Gates) -> Workflow[[], int]:
    """Declare a workflow of so many steps, or transactions, with a gate before each."""

    @app.step
    def step(n: int) -> int:
        gates.runs.append(n)
        return n

    @app.tx
    def tx(db: Tx, n: int) -> int:
        gates.runs.append(n)
        db.execute("INSERT INTO effects VALUES (%s)", [n])
        return n

    done = tx if kind.endswith("tx") else step

    @app.workflow
    def flow() -> int:
        total = 0
        for n in range(STEPS):
            gates.arrive(n)
            total += done(n)
        return total

    @app.workflow
    async def async_flow() -> int:
        total = 0
        for n in range(STEPS):
            await asyncio.to_thread(gates.arrive, n)
            total += await done.aio(n)
        return total

    flows = {"async remote": asking_flow(app, gates), "step": flow, "tx": flow}
    return flows.get(kind, async_flow)


def asking_flow(app: Tally, gates: Gates) -> Workflow[[], int]:
    """Declare a workflow that asks a remote worker beside a step, with what its steps returned before.

    No step returns the same number twice.
    """

    @app.remote("bank")
    async def charge(total: int) -> int:
        raise NotImplementedError

    @app.step
    def price(n: int) -> int:
        gates.runs.append(n)
        return 10 ** len(gates.runs)

    @app.step
    async def until_asked() -> None:
        """Go on until a directive is there; a job that may not ask for one leaves this step."""
        while True:
            with suppress(StoreError), app.connect() as db:
                if db.execute("SELECT count(*) FROM shop.outbox") != [(0,)]:
                    return
            await asyncio.sleep(0.01)

    @app.workflow
    async def remote_flow() -> int:
        total = 0
        for n in range(STEPS - 1):
            await asyncio.to_thread(gates.arrive, n)
            total += await price.aio(n)
        await asyncio.to_thread(gates.arrive, STEPS - 1)
        charged, _none = await asyncio.gather(charge(total), until_asked())
        return charged

    return remote_flow


def answer_the_asked(app: Tally) -> int:
    """Do what the remote worker is asked for, and return with what it was asked."""
    taken: list[HeldDirective | None] = []

    def take() -> HeldDirective | None:
        with suppress(StoreError):
            taken.append(RemoteHand(app, "bank").look())
        return taken[-1] if taken else None

    wait_until(take, "a directive")
    assert taken[-1] is not None
    total = int(taken[-1].payload["total"])
    assert taken[-1].succeed(total) is Heard.ACCEPTED
    return total


def run_through(
    app: Tally, kind: str, server: Server, leave_behind: Callable[[], None], take_over: Callable[[], None]
) -> tuple[int, list[int]]:
    """Run a job of several steps and lose the last ones that were acknowledged; return result and runs."""
    gates = Gates()
    flow = flow_on(app, kind, gates)

    def let_through(steps: range) -> None:
        for n in steps:
            wait_until(lambda n=n: n in gates.arrived, f"step {n}")
            gates.open.release()
        recorded = [(steps.stop,)]
        wait_until(lambda: told(server, "SELECT count(*) FROM shop.steps") == recorded, "a durable step")

    with app.transaction() as db:
        db.execute("CREATE TABLE effects (n INTEGER)")
    with app.worker(lease="60s"):
        job = flow.submit()
        let_through(range(LOST_FROM))
        leave_behind()
        let_through(range(LOST_FROM, STEPS - 1))
        wait_until(lambda: STEPS - 1 in gates.arrived)
        take_over()
        for _ in range(STEPS * 3):
            gates.open.release()
        if kind == "async remote":
            asked = answer_the_asked(app)
            assert asked == job.result(60)
        return job.result(60), gates.runs


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["step", "tx", "async step", "async tx"])
def test_steps_that_a_standby_never_had_are_run_again(primary: Server, standby: Server, kind: str) -> None:
    app = Tally(address_of(primary, standby))
    try:
        result, runs = run_through(app, kind, primary, *lose_by_failover(primary, standby))
        assert result == sum(range(STEPS))
        assert sorted(set(runs)) == list(range(STEPS))
        assert runs.count(LOST_FROM) == 2, "it was acknowledged, lost, and had to be done again"
        if kind.endswith("tx"):
            assert told(standby, "SELECT n FROM effects ORDER BY n") == [(n,) for n in range(STEPS)]
        assert audit(app.runtime().store).findings == []
    finally:
        app.close()


def prices(server: Server) -> int:
    """Return the sum of what the steps have returned that are recorded."""
    ((total,),) = told(server, "SELECT sum(result::bigint) FROM shop.steps WHERE name = 'price'")
    return int(str(total))


@pytest.mark.timeout(180)
def test_a_remote_worker_is_asked_only_with_what_the_standby_has(primary: Server, standby: Server) -> None:
    app = Tally(address_of(primary, standby))
    try:
        result, runs = run_through(app, "async remote", primary, *lose_by_failover(primary, standby))
        assert runs.count(LOST_FROM) == 2, "it was acknowledged, lost, and had to be done again"
        assert result == prices(standby), "it was charged with what no record says"
        assert told(standby, "SELECT count(*) FROM shop.outbox") == [(1,)]
        assert audit(app.runtime().store).findings == []
    finally:
        app.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["tx", "async step", "async remote"])
def test_steps_that_a_server_had_not_synced_are_run_again(primary: Server, kind: str) -> None:
    app = Tally(address_of(primary))

    def sync() -> None:
        """Sync what is there, and let nobody sync anything later: a stopped process is killed at the end."""
        told(primary, "CHECKPOINT")
        for (pid,) in told(primary, "SELECT pid FROM pg_stat_activity WHERE backend_type ~ 'writer'"):
            os.kill(int(str(pid)), signal.SIGSTOP)

    try:
        result, runs = run_through(app, kind, primary, sync, primary.restart)
        assert result == (prices(primary) if kind == "async remote" else sum(range(STEPS)))
        assert runs.count(LOST_FROM) == 2, "it was acknowledged, lost, and had to be done again"
        if kind == "tx":
            assert told(primary, "SELECT n FROM effects ORDER BY n") == [(n,) for n in range(STEPS)]
        assert audit(app.runtime().store).findings == []
    finally:
        app.close()
