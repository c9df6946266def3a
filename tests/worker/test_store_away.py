"""What is wrong with the store is never the job's fault: it is given back as soon as that can be written."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Self

import pytest

from tallystick import Tally, Tx, again, aio, gather, wait
from tallystick.errors import StoreError
from tests.patience import let_time_pass, wait_until
from tests.postgres.subject import fresh_schema
from tests.shut_door import Door

# Long enough for a first release to be refused too; less than a lease, and more than a short one.
OUTAGE_SECONDS = 0.7
SHORT_LEASE = 1.5
SECONDS = 8
# A wait for so long keeps its slot.
SHORT_WAIT = 0.2
# When the store is there again, its jobs are given back within this time.
GIVEN_BACK = timedelta(seconds=1)
_LOOK_SECONDS = 0.01


@pytest.fixture(params=["sqlite", "postgres"])
def door_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db", "", ""
    server, schema = request.getfixturevalue("server"), fresh_schema()
    return server.url(schema=schema), server.dsn, schema


@pytest.fixture
def app(door_url):
    tally = Tally(door_url[0])
    yield tally
    tally.close()


@pytest.fixture
def door(app, door_url):
    made = Door(app, *door_url[1:])
    yield made
    made.close()


class Witness:
    """Sees by how much this machine is late at the worst: a busy one wakes no thread when it should."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.late = timedelta()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        before = now_utc()
        while not self._over.wait(_LOOK_SECONDS):
            now = now_utc()
            self.late, before = max(self.late, now - before - timedelta(seconds=_LOOK_SECONDS)), now


def now_utc() -> datetime:
    return datetime.now(UTC)


class Once:
    """Shuts the door the first time that it is asked to."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.done = threading.Event()

    def __call__(self) -> None:
        if not self.done.is_set():
            self._door.shut()
            self.done.set()


def sync_flows(app, once):
    @app.step
    def shuts() -> int:
        once()
        return 1

    @app.step
    def goes_on(n: int) -> int:
        return n + 1

    @app.tx
    def note(db: Tx) -> int:
        return 2

    @app.workflow
    def child(n: int) -> int:
        return n

    @app.workflow(attempts=1)
    def step() -> int:
        return goes_on(shuts())

    @app.workflow(attempts=1)
    def last() -> int:
        return shuts() + 1

    @app.workflow(attempts=1)
    def returns() -> int:
        once()
        return 2

    @app.workflow(attempts=1)
    def tx() -> int:
        once()
        return note()

    @app.workflow(attempts=1)
    def signal() -> int:
        once()
        return wait("go", int)

    @app.workflow(attempts=1)
    def children() -> int:
        once()
        return sum(gather(child.child(0), child.child(2)))

    @app.workflow(attempts=1)
    def turn(turns: int = 1) -> int:
        once()
        if turns:
            again(turns - 1)
        return 2

    return {
        "step": step,
        "last": last,
        "returns": returns,
        "tx": tx,
        "wait": signal,
        "children": children,
        "again": turn,
    }


def async_flows(app, once):
    @app.step
    async def shuts() -> int:
        once()
        return 1

    @app.step
    async def goes_on(n: int) -> int:
        return n + 1

    @app.tx
    def note(db: Tx) -> int:
        return 2

    @app.workflow
    async def child(n: int) -> int:
        return n

    @app.workflow(attempts=1)
    async def step() -> int:
        return await goes_on(await shuts())

    @app.workflow(attempts=1)
    async def last() -> int:
        return await shuts() + 1

    @app.workflow(attempts=1)
    async def returns() -> int:
        once()
        return 2

    @app.workflow(attempts=1)
    async def tx() -> int:
        once()
        return await note.aio()

    @app.workflow(attempts=1)
    async def signal() -> int:
        once()
        return await aio.wait("go", int)

    @app.workflow(attempts=1)
    async def children() -> int:
        once()
        return sum(await aio.gather(child.child(0), child.child(2)))

    @app.workflow(attempts=1)
    async def turn(turns: int = 1) -> int:
        once()
        if turns:
            again(turns - 1)
        return 2

    return {
        "step": step,
        "last": last,
        "returns": returns,
        "tx": tx,
        "wait": signal,
        "children": children,
        "again": turn,
    }


KINDS = ["step", "last", "returns", "tx", "wait", "children", "again"]


def charged(app):
    with app.connect() as db:
        return [row for row in db.execute("SELECT job_id, attempt, reason, charged FROM attempts") if row[-1]]


@pytest.mark.parametrize("colour", [sync_flows, async_flows], ids=["sync", "async"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_the_store_refuses_costs_the_job_no_attempt(app, door, kind, colour):
    once = Once(door)
    flow = colour(app, once)[kind]
    with app.worker(), Witness() as witness:
        job = flow.submit()
        assert once.done.wait(SECONDS)
        let_time_pass(OUTAGE_SECONDS)
        opened_at = now_utc()
        door.open()
        if kind == "wait":
            job.send("go", 2)
        assert job.result(SECONDS) == 2
    assert charged(app) == []
    released = [event.at for event in job.history() if event.name == "release"]
    assert released[0] - opened_at < GIVEN_BACK + witness.late


@pytest.mark.parametrize("colour", [sync_flows, async_flows], ids=["sync", "async"])
@pytest.mark.parametrize("kind", ["step", "last", "returns"])
def test_a_lease_that_ran_out_while_the_store_was_away_is_not_charged_if_its_worker_lives(
    app, door, kind, colour
):
    once = Once(door)
    flow = colour(app, once)[kind]
    with app.worker(lease=SHORT_LEASE):
        job = flow.submit()
        assert once.done.wait(SECONDS)
        wait_until(lambda: app.runtime().store.expired(1), "the lease has run out")
        door.open()
        assert job.result(SECONDS) == 2
    assert charged(app) == []


def test_a_function_that_runs_on_while_its_lease_cannot_be_renewed_is_not_charged(app, door, caplog):
    once, back = Once(door), threading.Event()

    @app.workflow(attempts=1)
    def flow() -> int:
        if not back.is_set():
            once()
            back.wait(SECONDS)
        return 2

    with app.worker(lease=SHORT_LEASE):
        job = flow.submit()
        assert once.done.wait(SECONDS)
        wait_until(lambda: app.runtime().store.expired(1), "the lease has run out")
        # Not before a renewal was refused: a worker that tries when it is too late is to blame.
        wait_until(lambda: "renew failed" in caplog.text, "a renewal was refused")
        door.open()
        wait_until(lambda: "reclaim" in [event.name for event in job.history()], "it is given back")
        back.set()
        assert job.result(SECONDS) == 2
    assert charged(app) == []


def test_a_function_that_keeps_its_worker_from_renewing_is_charged(app, monkeypatch):
    """The store was there all the time: nobody but the job can be to blame."""

    @app.workflow(attempts=1)
    def flow() -> None:
        runtime = app.runtime()
        wait_until(lambda: runtime.store.expired(1), "the lease has run out")

    with app.worker(lease=SHORT_LEASE):
        # As if it held the interpreter: maintenance does not come to renew, and comes when it is too late.
        role = app.runtime()._maintenance.renew
        renew = role.run
        monkeypatch.setattr(role, "run", lambda: renew() if app.runtime().store.expired(1) else None)
        job = flow.submit()
        wait_until(lambda: job.row().error_code == "ATTEMPTS_SPENT", "its one attempt is spent")


@pytest.fixture
def fails_once(app, monkeypatch):
    """Let one read of the store fail, and the next ones pass; return what is still to fail."""

    def fails(read):
        store = app.runtime().store
        answer, failures = getattr(store, read), [StoreError("too many connections")]

        def reads(*arguments, **options):
            if failures:
                raise failures.pop()
            return answer(*arguments, **options)

        monkeypatch.setattr(store, read, reads)
        return failures

    return fails


@pytest.mark.parametrize("colour", [sync_flows, async_flows], ids=["sync", "async"])
def test_how_children_ended_may_be_unreadable_for_a_moment(app, fails_once, colour):
    flow = colour(app, lambda: None)["children"]
    failures = fails_once("children")
    with app.worker():
        assert flow.submit().result(SECONDS) == 2
    assert not failures
    assert charged(app) == []


def test_the_inbox_may_be_unreadable_for_a_moment_while_a_workflow_lingers(app, fails_once):
    @app.workflow
    def sync() -> int | None:
        return wait("go", int, timeout=SHORT_WAIT)

    @app.workflow
    async def by_task() -> int | None:
        return await aio.wait("go", int, timeout=SHORT_WAIT)

    for flow in (sync, by_task):
        failures = fails_once("has_signal")
        job = flow.submit()
        job.send("go", 2)
        with app.worker():
            assert job.result(SECONDS) == 2
        assert not failures


def test_a_worker_that_stops_while_the_store_is_away_gives_back_what_it_owes_before_it_is_gone(app, door):
    once = Once(door)
    flow = sync_flows(app, once)["last"]
    with app.worker():
        job = flow.submit()
        assert once.done.wait(SECONDS)
        wait_until(lambda: app.runtime().worker.owed, "its end was refused")
        opening = threading.Timer(OUTAGE_SECONDS, door.open)
        opening.start()
    opening.join()
    assert [event.name for event in job.history()] == ["submit", "claim", "release"]
    assert charged(app) == []
