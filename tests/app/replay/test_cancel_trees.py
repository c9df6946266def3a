"""Cancelling a tree: one statement asks everything below, and nothing of it is claimed afterwards."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tallystick import Cancelled, ChildrenFailed, JobCancelled, JobFailed, aio, current, gather, wait
from tallystick.errors import TallyError
from tallystick.testing.stepping import cancel_overdue, check_books, is_at_rest
from tests.patience import wait_until

MANY = 5_000
SECONDS = 30


def counts(app) -> dict[str, int]:
    with app.connect() as db:
        return dict(db.execute("select state, count(*) from jobs group by state"))


@pytest.mark.slow
def test_of_five_thousand_queued_children_none_is_claimed_after_the_parent_was_cancelled(app):
    ran: list[float] = []

    @app.workflow
    def child(n: int) -> None:
        ran.append(time.monotonic())

    @app.workflow
    def parent() -> None:
        gather(*(child.opts(delay="400ms").child(n) for n in range(MANY)))

    with app.worker(concurrency=4):
        job = parent.submit()
        wait_until(lambda: counts(app).get("QUEUED", 0) + len(ran) >= MANY, "all of them are born")
        job.cancel()
        returned = time.monotonic()
        wait_until(lambda: counts(app).get("CANCELLED", 0) + len(ran) >= MANY + 1, "all of them have ended")
    # A child that was claimed before may begin a moment after.
    late = [at for at in ran if at > returned]
    assert len(late) <= 4
    with app.connect() as db:
        ((ended,),) = db.execute(f"select completed_at from jobs where job_id = '{job.id}'")
        claims = db.execute("select started_at from attempts where lease_id <> 'cancel'")
    assert max(at for (at,) in claims) <= ended, "by the clock of the store none was claimed after it"
    assert set(counts(app)) <= {"CANCELLED", "SUCCEEDED"}


def chain_of(app):
    @app.workflow
    def level(n: int) -> None:
        if n:
            level(n - 1)
        else:
            wait("never", bool)

    return level


def test_a_chain_of_twenty_levels_ends_within_a_second(app):
    """By the clock of the store. The best of a few counts: the machine may be busy."""
    level, took = chain_of(app), []
    with app.worker():
        while len(took) < 3 and not [ms for ms in took if ms < 1_000]:
            job = level.submit(19)
            wait_until(lambda: counts(app).get("IN_PROGRESS") == 20 and is_at_rest(app))
            assert job.cancel() == "CANCELLED"
            wait_until(lambda: set(counts(app)) == {"CANCELLED"}, "all of them have ended")
            with app.connect() as db:
                below = f"select max(completed_at) from jobs where job_id like '{job.id}%'"
                took.append(db.execute(below)[0][0] - job.row().completed_at)
    assert min(took) < 1_000


def test_a_chain_of_twenty_levels_is_asked_at_once_and_ended_by_one_sweep(timed, hand):
    job = chain_of(timed).submit(19)
    hand.work_all()
    assert job.cancel() == "CANCELLED"
    with timed.connect() as db:
        asked = db.execute("select state, count(*), count(cancel_at) from jobs group by state order by 2")
    assert asked == [("CANCELLED", 1, 1), ("CANCELLING", 19, 19)]
    assert len(cancel_overdue(timed)) == 19
    assert counts(timed) == {"CANCELLED": 20}
    with timed.connect() as db:
        assert db.execute("select count(distinct completed_at) from jobs") == [(1,)]


def test_runaway_recursion_stops_at_its_depth_with_a_clear_error(app):
    @app.workflow
    def deeper(n: int) -> int:
        return deeper(n + 1)

    with app.worker():
        job = deeper.submit(0)
        with pytest.raises(JobFailed):
            job.result(SECONDS)
    assert sum(counts(app).values()) == 51
    with app.connect() as db:
        told = [
            message for (message,) in db.execute("select error_message from jobs order by length(job_id)")
        ]
    assert "a job has at most 50 parents above it" in told[-1]


def test_a_running_async_step_is_stopped_its_slot_is_free_and_the_workflow_cleans_up(app):
    begun, cleaned = threading.Event(), threading.Event()

    @app.step
    async def download() -> None:
        begun.set()
        await asyncio.sleep(3_600)

    @app.step
    async def clean_up() -> None:
        await asyncio.sleep(0.01)
        current().raise_if_cancelled()
        cleaned.set()

    @app.workflow
    async def flow() -> None:
        try:
            await download()
        except Cancelled:
            await clean_up()
            raise

    @app.workflow
    async def quick() -> int:
        return 1

    with app.worker(concurrency=1):
        job = flow.submit()
        assert begun.wait(SECONDS)
        assert job.cancel(grace="1m") == "CANCELLING"
        with pytest.raises(JobCancelled):
            job.result(SECONDS)
        assert cleaned.is_set()
        assert quick.submit().result(SECONDS) == 1
    assert [event.name for event in job.history()] == ["submit", "claim", "step", "cancel"]


@pytest.mark.parametrize("limit", [None, "1h"])
def test_all_async_steps_that_run_side_by_side_are_stopped(app, limit):
    begun = threading.Semaphore(0)
    stopped: list[str] = []

    @app.step(timeout=limit)
    async def download(n: int) -> None:
        begun.release()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            stopped.append(f"{n}")
            raise

    @app.workflow
    async def flow() -> None:
        await asyncio.gather(*(download.named(f"{n}")(n) for n in range(3)))

    with app.worker():
        job = flow.submit()
        for _ in range(3):
            assert begun.acquire(timeout=SECONDS)
        job.cancel(grace="1m")
        with pytest.raises(JobCancelled):
            job.result(SECONDS)
    assert sorted(stopped) == ["0", "1", "2"]


def test_an_async_step_that_ignores_its_end_keeps_its_result_and_the_next_call_is_refused(app):
    begun = threading.Event()

    @app.step
    async def stubborn() -> int:
        begun.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            return 7
        return 0

    @app.workflow
    async def flow() -> None:
        assert await stubborn() == 7
        await aio.sleep("1h")

    with app.worker():
        job = flow.submit()
        assert begun.wait(SECONDS)
        job.cancel(grace="1m")
        with pytest.raises(JobCancelled):
            job.result(SECONDS)
    assert [event.name for event in job.history()] == ["submit", "claim", "step", "cancel"]


def test_a_job_that_is_ended_by_force_frees_the_slot_of_its_async_function(app):
    begun = threading.Event()

    @app.workflow
    async def deaf() -> None:
        begun.set()
        await asyncio.sleep(3_600)

    @app.workflow
    async def quick() -> int:
        return 1

    with app.worker(concurrency=1):
        job = deaf.submit()
        assert begun.wait(SECONDS)
        assert job.cancel(grace="50ms") == "CANCELLING"
        wait_until(lambda: job.state() == "CANCELLED", "its grace is over")
        assert quick.submit().result(SECONDS) == 1


def test_a_running_async_step_is_stopped_and_its_slot_is_free_when_another_worker_has_the_job(app):
    begun, stopped = threading.Event(), threading.Event()

    @app.step
    async def download() -> None:
        begun.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            stopped.set()
            raise

    @app.workflow
    async def flow() -> None:
        await download()

    @app.workflow
    async def quick() -> int:
        return 1

    with app.worker(concurrency=1, lease="900ms"):
        job = flow.submit()
        assert begun.wait(SECONDS)
        job.pause()  # so that no worker takes it up again here
        with app.transaction() as db:
            db.execute("update attempts set lease_id = 'of another worker'")
        assert stopped.wait(SECONDS)
        assert quick.submit().result(SECONDS) == 1


def test_children_that_run_are_asked_with_their_parent_and_clean_up(app):
    begun, cleaned = threading.Event(), threading.Event()

    @app.workflow
    async def child() -> None:
        try:
            await work()
        except Cancelled:
            cleaned.set()
            raise

    @app.step
    async def work() -> None:
        begun.set()
        await asyncio.sleep(3_600)

    @app.workflow
    def parent() -> None:
        gather(child.child())

    with app.worker():
        job = parent.submit()
        assert begun.wait(SECONDS)
        assert job.cancel(grace="1m") == "CANCELLED"
        assert cleaned.wait(SECONDS)
        wait_until(lambda: counts(app) == {"CANCELLED": 2}, "the child has ended")


def test_a_job_that_is_being_cancelled_starts_no_children(app):
    begun, said = threading.Event(), []

    @app.workflow
    def child() -> None: ...

    @app.step
    def work() -> None:
        begun.set()
        wait_until(lambda: current().cancelled)

    @app.workflow
    def flow() -> None:
        try:
            work()
            work()
        except Cancelled:
            try:
                gather(child.child())
            except Exception as error:  # noqa: BLE001 (its text is what is looked at)
                said.append(str(error))
            raise

    with app.worker():
        job = flow.submit()
        assert begun.wait(SECONDS)
        job.cancel(grace="1m")
        with pytest.raises(JobCancelled):
            job.result(SECONDS)
    assert said == ["a job that is being cancelled starts no children: clean up with steps"]
    assert counts(app) == {"CANCELLED": 1}


def test_a_parent_hears_of_a_child_whose_deadline_has_passed(app):
    @app.workflow
    def child() -> None:
        wait("never", bool)

    @app.workflow
    def parent() -> list[str]:
        try:
            gather(child.opts(deadline="50ms").child())
        except ChildrenFailed as failed:
            return [error.code for error in failed.errors if isinstance(error, TallyError)]
        return []

    with app.worker():
        assert parent.submit().result(SECONDS) == ["DEADLINE"]


def parent_of(app):
    """Return a workflow that waits for so many children, which nobody claims."""

    @app.workflow
    def child(n: int) -> None: ...

    @app.workflow
    def parent(how_many: int) -> None:
        gather(*(child.opts(delay="1h").child(n) for n in range(how_many)))

    return parent


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_children_that_nobody_ran_end_with_few_statements(timed, hand, statements):
    """A hundred thousand of them are ended by a sweep: they are looked at and written as lists."""
    job = parent_of(timed).submit(50)
    hand.work()
    job.cancel()
    statements.clear()
    assert len(cancel_overdue(timed)) == 50
    assert len(statements) < 60
    assert counts(timed) == {"CANCELLED": 51}
    assert not check_books(timed)


def test_children_that_end_as_a_list_have_the_books_of_one_that_ended_alone(timed, hand):
    parent = parent_of(timed)
    alone, many = parent.submit(1), parent.submit(3)
    hand.work_all()
    for job, ended in ((alone, 1), (many, 3)):
        assert job.cancel() == "CANCELLED"
        assert len(cancel_overdue(timed)) == ended
    books = [book_of(timed, job.id, child.id) for job in (alone, many) for child in job.children()]
    assert books == [books[0]] * 4
    assert [rows for rows in books[0] if not rows] == []
    assert not check_books(timed)


DECIDED = (
    "state, attempt, dimension, ready_at, hold, semaphore, root_ledger, start_ledger, start_acked_at, "
    "cancel_at, completed_at, rev, head_n, result, error, error_code, error_message, updated_at"
)


def book_of(app, parent: str, child: str) -> list[list[str]]:
    """Return what was decided of a child, in all tables, without what tells it from its siblings."""
    tables = (
        f"select {DECIDED} from jobs where job_id = '{child}'",
        f"select * from attempts where job_id = '{child}'",
        f"select * from messages where guid in ('cancel:{child}', 'child:{child}') order by guid",
        f"select n, type, at, attempt, payload from events where job_id = '{child}' and type = 'cancel'",
    )
    with app.connect() as db:
        found = [list(map(str, db.execute(text))) for text in tables]
    return [[row.replace(child, "child").replace(parent, "parent") for row in rows] for rows in found]


def test_a_child_that_was_sent_a_signal_or_runs_ends_beside_those_that_end_as_a_list(timed, hand):
    job = parent_of(timed).submit(5)
    hand.work()
    signalled, *_others = job.children()
    timed.job(signalled.id).send("early", 1)
    job.cancel()
    assert len(cancel_overdue(timed)) == 5
    assert counts(timed) == {"CANCELLED": 6}
    assert not check_books(timed)


def test_a_list_with_a_row_that_the_database_refuses_ends_all_others(timed, hand):
    """One bundle is refused whole; then each is tried by itself."""
    job = parent_of(timed).submit(5)
    hand.work()
    spoiled = job.children()[2].id
    with timed.transaction() as db:
        db.execute(
            "insert into messages (guid, job_id, name, kind, created_at, acked_at) "
            f"values ('child:{spoiled}', '{job.id}', 'x', 'child', 1, 1)"
        )
    job.cancel()
    assert len(cancel_overdue(timed)) == 4
    assert counts(timed) == {"CANCELLED": 5, "CANCELLING": 1}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("how_many", [5_000, 100_000])
def test_a_hundred_thousand_queued_children_end_within_seconds_of_cpu(timed, hand, how_many):
    """None can be claimed after `cancel()` returned. Run it with -s for the figures of this process."""
    job = parent_of(timed).submit(how_many)
    hand.work_all()
    begun = time.process_time()
    assert job.cancel() == "CANCELLED"
    returned = time.process_time()
    ended = 0
    while found := len(cancel_overdue(timed)):
        ended += found
    over = time.process_time()
    print(  # noqa: T201 (the figures are what this long test is for)
        f"{how_many}: cancel() {returned - begun:.2f} s of CPU, all had ended after {over - begun:.2f} s"
    )
    assert ended == how_many
    assert over - begun < how_many * 200e-6
    with timed.connect() as db:
        assert db.execute("select count(*) from attempts where lease_id <> 'cancel'") == [(1,)]
        assert db.execute("select state, count(*) from jobs group by state") == [("CANCELLED", how_many + 1)]
