"""A deadline ends a job wherever it stands, and a grace is over when its time is: both by a timer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import Cancelled, JobCancelled, aio, gather, sleep, wait
from tallystick.errors import DeadlineExceeded
from tallystick.worker.roles.cancel import EndOverdue
from tests.patience import let_time_pass, wait_until

SECONDS = 30


@pytest.fixture
def workflows(app):
    @app.workflow
    def waits() -> None:
        wait("never", bool)

    @app.workflow
    def sleeps() -> None:
        sleep("1d")

    @app.workflow
    def gathers() -> None:
        gather(waits.child())

    @app.workflow
    def queued() -> None: ...

    return {"waits": waits, "sleeps": sleeps, "gathers": gathers, "queued": queued.opts(queue="elsewhere")}


@pytest.mark.parametrize("what", ["queued", "waits", "sleeps", "gathers"])
def test_a_job_that_nobody_runs_is_cancelled_at_its_deadline(app, workflows, what):
    with app.worker():
        job = workflows[what].opts(deadline="300ms").submit()
        assert "it is cancelled at" in job.why()
        with pytest.raises(DeadlineExceeded, match="its deadline has passed") as passed:
            job.result(SECONDS)
        assert isinstance(passed.value, JobCancelled)
        row = job.row()
        assert (row.state, row.error_code) == ("CANCELLED", "DEADLINE")
        assert job.why().endswith("its deadline has passed")
        if what == "gathers":
            with app.connect() as db:
                code = f"select state, error_code from jobs where parent_job_id = '{job.id}'"
                wait_until(lambda: db.execute(code) == [("CANCELLED", "DEADLINE")], "its child has ended too")


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_children_inherit_the_deadline_and_detached_jobs_do_not(timed, hand, colour):
    @timed.workflow
    def leaf() -> None:
        wait("never", bool)

    @timed.workflow
    def branch() -> None:
        gather(leaf.child())

    @timed.workflow(name="tree")
    def tree() -> None:
        leaf.opts(detached=True, tags=["detached"]).submit()
        gather(branch.child(), *(leaf.opts(deadline=each, tags=[each]).child() for each in ("3h", "10m")))

    @timed.workflow(name="tree-of-tasks")
    async def tree_of_tasks() -> None:
        await leaf.opts(detached=True, tags=["detached"]).submit_aio()
        asked = (leaf.opts(deadline=each, tags=[each]).child() for each in ("3h", "10m"))
        await aio.gather(branch.child(), *asked)

    job = {"sync": tree, "async": tree_of_tasks}[colour].opts(deadline="1h").submit()
    hand.work_all()
    told = {each.tags or each.row().handler: each.row().deadline_at for each in job.children()}
    hour = job.row().deadline_at
    (apart,) = timed.jobs(tag="detached")
    assert told == {
        "branch": hour,
        ("3h",): hour,
        ("10m",): hour - 50 * 60_000,
        ("detached",): None,
    }
    assert apart.row().deadline_at is None
    (deep,) = next(each for each in job.children() if each.row().handler == "branch").children()
    assert deep.row().deadline_at == hour


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_running_job_may_clean_up_after_its_deadline(app, colour):
    cleaned = threading.Event()

    @app.step
    def work() -> None:
        let_time_pass(0.02)

    @app.step
    async def download() -> None:
        await asyncio.sleep(3_600)

    @app.workflow
    def sync() -> None:
        try:
            while True:
                work()
        except Cancelled:
            cleaned.set()
            raise

    @app.workflow(name="async")
    async def colourful() -> None:
        try:
            await download()
        except Cancelled:
            cleaned.set()
            raise

    with app.worker():
        job = {"sync": sync, "async": colourful}[colour].opts(deadline="200ms").submit()
        with pytest.raises(DeadlineExceeded):
            job.result(SECONDS)
        assert cleaned.is_set()
    assert job.row().error_code == "DEADLINE"


def test_a_grace_is_over_soon_after_its_time(app):
    """Within 200 ms by the clock of the store. The best of a few counts: the machine may be busy."""
    begun, over = threading.Semaphore(0), threading.Event()

    @app.workflow
    def deaf() -> None:
        begun.release()
        over.wait(SECONDS)

    with app.worker():
        jobs = [deaf.submit() for _ in range(5)]
        for _ in jobs:
            assert begun.acquire(timeout=SECONDS)
        for place, job in enumerate(jobs):
            assert job.cancel(grace=f"{300 + 70 * place}ms") == "CANCELLING"
        wait_until(lambda: {job.state() for job in jobs} == {"CANCELLED"}, "every grace is over")
        over.set()
    with app.connect() as db:
        late = [ms for (ms,) in db.execute("select completed_at - cancel_at from jobs")]
    assert min(late) >= 0
    assert min(late) <= 200


@pytest.fixture
def overdue(timed, hand):
    """A job that runs, and the role that ends it when its grace is over."""

    @timed.workflow
    def deaf() -> None: ...

    job = deaf.submit()
    hand.claim()
    with timed.worker(concurrency=1, queues=["elsewhere"]):
        return job, EndOverdue(timed.runtime().worker)


def test_a_worker_ends_a_job_at_the_instant_at_which_its_grace_is_over(overdue, clock):
    """Whatever the machine does: the role asks for a turn when the time has come, and acts in that turn."""
    job, role = overdue
    assert job.cancel(grace="500ms") == "CANCELLING"
    for passed, left in ((0, 0.5), (499, 0.001)):
        clock.advance(passed)
        role.run()
        assert role.rest == pytest.approx(left)
        assert role.every <= role.rest
        assert job.state() == "CANCELLING"
    clock.advance(1)
    role.run()
    row = job.row()
    assert (row.state, row.completed_at) == ("CANCELLED", clock.wall_ms())


def test_a_worker_whose_clock_is_ahead_of_the_store_looks_again_at_the_instant(overdue, clock):
    """It is not put off as what the books refuse is."""
    job, role = overdue
    job.cancel(grace="500ms")
    role.run()
    clock.jump_wall(-2)
    clock.advance(500)
    role.run()
    assert job.state() == "CANCELLING"
    assert role.every <= role.rest == pytest.approx(0.002)
    clock.advance(2)
    role.run()
    assert job.state() == "CANCELLED"
