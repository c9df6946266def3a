"""A transaction that is kept open: nothing waits for it in its own thread, and it does not last for ever."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import Tally
from tallystick.errors import BadInput, NotFound, StoreMisused, TxTooLong
from tests.elsewhere import elsewhere
from tests.patience import wait_until

PATIENCE = 30

# A statement that takes much longer than any limit here.
SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
}

VERBS = {
    "submit": lambda app, flow, job: flow.submit(),
    "submit a list": lambda app, flow, job: flow.submit_many([(), ()]),
    "send": lambda app, flow, job: job.send("go"),
    "send to many": lambda app, flow, job: app.send_many([job], "go"),
    "cancel": lambda app, flow, job: job.cancel(),
    "pause": lambda app, flow, job: job.pause(),
    "resume": lambda app, flow, job: job.resume(),
    "fork": lambda app, flow, job: job.fork(at="a step"),
    "result": lambda app, flow, job: job.result(PATIENCE),
    "prune": lambda app, flow, job: app.prune(older_than="1d"),
    "close": lambda app, flow, job: app.close(),
    "another transaction": lambda app, flow, job: app.transaction().__enter__(),
}


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow() -> int:
        return 1

    with app.transaction() as db:
        db.execute("CREATE TABLE effects (n INTEGER)")
    return flow


def effects(app: Tally) -> int:
    with app.connect() as db:
        return db.execute("SELECT count(*) FROM effects")[0][0]


@pytest.mark.parametrize("verb", VERBS)
def test_what_would_wait_for_a_transaction_of_its_own_thread_is_refused(app: Tally, flow, verb: str):
    """One task holds it across an await; another task of that loop calls what blocks the loop."""
    job = flow.submit()
    opened = asyncio.Event()

    async def holds(over: asyncio.Event) -> None:
        with app.transaction(limit="60s") as db:
            db.execute("INSERT INTO effects VALUES (1)")
            opened.set()
            await over.wait()

    async def main() -> None:
        over = asyncio.Event()
        holding = asyncio.create_task(holds(over))
        await opened.wait()
        try:
            with pytest.raises(StoreMisused, match=r"this thread holds app.transaction\(\)"):
                VERBS[verb](app, flow, job)
        finally:
            over.set()
        await holding

    asyncio.run(main())
    assert effects(app) == 1
    assert flow.submit().state() == "QUEUED"


def test_tasks_that_do_not_block_the_loop_wait_for_the_transaction_of_another(app: Tally, flow):
    opened = asyncio.Event()

    async def holds() -> None:
        with app.transaction() as db:
            db.execute("INSERT INTO effects VALUES (1)")
            opened.set()
            await asyncio.sleep(0.1)

    async def main() -> str:
        holding = asyncio.create_task(holds())
        await opened.wait()
        job = await flow.submit_aio()
        await holding
        return job.state()

    assert asyncio.run(main()) == "QUEUED"


def test_a_transaction_whose_owner_sleeps_is_rolled_back(app: Tally, url: str, flow):
    other = Tally(url)
    jobs = []

    def writes(app: Tally) -> None:
        with app.transaction() as db:
            db.execute("INSERT INTO effects VALUES (2)")

    def sleeps() -> None:
        with app.transaction(limit="200ms") as db:
            db.execute("INSERT INTO effects VALUES (1)")
            jobs.append(flow.opts(within=db).submit())
            elsewhere(writes, other)  # on SQLite it waits for its turn
            wait_until(lambda: not db._loan.open, "the end of its time")  # type: ignore[attr-defined]  # SQLite's own
            with pytest.raises(TxTooLong, match="200 ms"):
                db.execute("INSERT INTO effects VALUES (3)")
            with pytest.raises(TxTooLong, match="200 ms"):
                flow.opts(within=db).submit()

    with pytest.raises(TxTooLong, match="200 ms and was rolled back"):
        sleeps()
    other.close()
    assert effects(app) == 1
    with pytest.raises(NotFound):
        jobs[0].row()
    assert flow.submit().state() == "QUEUED"


def test_the_end_of_a_transaction_that_took_too_long_raises_too(app: Tally, flow):
    def sleeps() -> None:
        with app.transaction(limit="50ms") as db:
            db.execute("INSERT INTO effects VALUES (1)")
            wait_until(lambda: not db._loan.open, "the end of its time")  # type: ignore[attr-defined]  # SQLite's own

    with pytest.raises(TxTooLong):
        sleeps()
    assert effects(app) == 0


def test_a_statement_that_runs_when_the_time_is_up_is_ended(app: Tally, url: str, flow):
    slow = SLOW[url.partition(":")[0]]

    def computes() -> None:
        with app.transaction(limit="200ms") as db:
            db.execute("INSERT INTO effects VALUES (1)")
            db.execute(slow)

    with pytest.raises(TxTooLong):
        computes()
    assert effects(app) == 0


def test_beside_a_worker_a_transaction_lasts_a_third_of_the_lease_at_most(app: Tally, flow):
    def sleeps() -> None:
        with app.transaction(limit="10m") as db:
            wait_until(lambda: not db._loan.open, "the end of its time")  # type: ignore[attr-defined]  # SQLite's own

    with app.worker(lease="600ms"):
        with pytest.raises(TxTooLong) as raised:
            sleeps()
        assert raised.value.fields["ms_max"] == 200
        assert flow.submit().result(PATIENCE) == 1


def test_an_error_of_the_block_is_raised_although_the_time_was_up(app: Tally, flow):
    def fails() -> None:
        with app.transaction(limit="50ms") as db:
            wait_until(lambda: not db._loan.open, "the end of its time")  # type: ignore[attr-defined]  # SQLite's own
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fails()


def test_a_limit_of_nothing_is_refused(app: Tally):
    with pytest.raises(BadInput, match="leaves no time"), app.transaction(limit=0):
        pass


def test_no_thread_is_left_behind_by_transactions(app: Tally, flow):
    before = threading.active_count()
    for n in range(3):
        with app.transaction() as db:
            db.execute(f"INSERT INTO effects VALUES ({n})")
    assert threading.active_count() <= before
    assert effects(app) == 3
