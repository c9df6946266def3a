"""Values that a job shows while it runs: durable, the last one of each name, for others to read and watch."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import JobFailed, OutsideWorkflow, current, progress, set_value, wait
from tallystick.errors import BadInput, NotFound
from tallystick.testing.stepping import check_books, die
from tests.patience import wait_until


def changes(app, job) -> dict[str, int]:
    with app.connect() as db:
        return dict(db.execute(f"SELECT name, rev FROM job_values WHERE job_id = '{job.id}'"))


def test_a_workflow_shows_values_before_its_next_step_begins(app):
    begun, go = threading.Event(), threading.Event()

    @app.step
    def work() -> None:
        begun.set()
        assert go.wait(30)

    @app.workflow
    def flow() -> None:
        set_value("stage", "first")
        set_value("stage", {"n": 2})
        work()
        set_value("end", [1, None])

    job = flow.submit()
    assert job.values() == {}
    with app.worker():
        assert begun.wait(30)
        assert job.values() == {"stage": {"n": 2}}
        go.set()
        job.result(30)
    assert job.value("stage") == {"n": 2}
    assert job.values() == {"stage": {"n": 2}, "end": [1, None]}
    assert (job.value("none"), job.value("none", 7)) == (None, 7)
    assert asyncio.run(job.value_aio("end")) == [1, None]
    assert asyncio.run(job.values_aio()) == job.values()
    assert check_books(app) == []


def test_a_replay_does_not_set_again_what_is_durable(timed, hand):
    @timed.step
    def work() -> None: ...

    @timed.workflow
    def flow() -> str:
        set_value("once", 1)
        set_value("stage", "begun")
        work()
        set_value("stage", "waiting")
        answer = wait("go", str)
        set_value("stage", answer)
        return answer

    job = flow.submit()
    hand.work()
    assert (job.value("stage"), changes(timed, job)) == ("waiting", {"once": 1, "stage": 2})
    job.send("go", "done")
    hand.work()
    assert job.result(5) == "done"
    assert (job.value("stage"), changes(timed, job)) == ("done", {"once": 1, "stage": 3})


def test_what_was_set_before_a_crash_and_was_not_durable_is_set_by_the_next_attempt(timed, hand):
    deaths = [1]

    @timed.step
    def work() -> None: ...

    @timed.workflow
    def flow() -> None:
        set_value("stage", "one")
        work()
        set_value("stage", "two")
        if deaths:
            deaths.pop()
            die()

    job = flow.submit()
    assert hand.work() == "died"
    assert (job.value("stage"), changes(timed, job)) == ("one", {"stage": 1})
    assert hand.expire() == 1
    hand.work()
    assert (job.value("stage"), changes(timed, job)) == ("two", {"stage": 2})


def test_a_step_writes_at_most_one_value_a_second_and_the_last_one_with_its_record(timed, hand, clock):
    seen: list[object] = []

    @timed.step
    def copy() -> None:
        for n in range(5):
            progress(n, 10)
            wait_until(job.values)
        seen.append(job.value("progress"))
        clock.advance(1_000)
        progress(7, 10)
        wait_until(lambda: job.value("progress")["done"] == 7)
        seen.append(changes(timed, job))
        progress(9, 10)
        set_value("file", "b.txt")
        seen.append(job.value("progress"))

    @timed.workflow
    def flow() -> None:
        copy()

    job = flow.submit()
    hand.work()
    assert seen == [{"done": 0, "total": 10}, {"progress": 2}, {"done": 7, "total": 10}]
    assert job.values() == {"progress": {"done": 9, "total": 10}, "file": "b.txt"}


def test_async_steps_show_values_too(app):
    @app.step
    async def copy(n: int) -> None:
        set_value(f"part-{n}", n)
        await asyncio.sleep(0)
        set_value(f"part-{n}", n * n)

    @app.workflow
    async def flow() -> None:
        await asyncio.gather(*(copy.named(str(n))(n) for n in range(4)))
        set_value("parts", 4)

    with app.worker():
        job = flow.submit()
        job.result(30)
    assert job.values() == {"part-0": 0, "part-1": 1, "part-2": 4, "part-3": 9, "parts": 4}


def test_a_worker_that_lost_its_job_shows_nothing_any_more(timed, hand):
    @timed.step
    def slow() -> None:
        set_value("who", "first")
        wait_until(job.values)
        assert hand.expire() == 1
        assert hand.work() == "EndJob"
        set_value("who", "first again")

    @timed.workflow
    def flow() -> None:
        if current().attempt == 1:
            slow()
        else:
            set_value("who", "second")

    job = flow.submit()
    assert hand.work() == "lost"
    assert job.value("who") == "second"
    assert job.state() == "SUCCEEDED"


def test_a_fork_shows_what_its_copies_say(app):
    @app.step
    def work() -> None: ...

    @app.workflow
    def flow() -> None:
        set_value("stage", "one")
        work()
        set_value("stage", "two")
        work()

    with app.worker():
        job = flow.submit()
        job.result(30)
        fork = job.fork(at="work#2")
        fork.result(30)
    assert fork.values() == {"stage": "two"}


def test_a_watch_tells_every_change_and_ends_with_the_job(app):
    gates = [threading.Event() for _ in range(3)]

    @app.step
    def part(n: int) -> None:
        assert gates[n].wait(30)

    @app.workflow
    def flow() -> None:
        for n in range(3):
            progress(n, 3)
            part(n)
        progress(3, 3)

    async def watched(job) -> list[tuple[str, object]]:
        told = []
        async for change in job.watch_aio():
            told.append(change)
            if change[1]["done"] < len(gates):
                gates[change[1]["done"]].set()
        return told

    everything = [("progress", {"done": n, "total": 3}) for n in range(4)]
    with app.worker():
        assert asyncio.run(watched(flow.submit())) == everything
        for gate in gates:
            gate.clear()
        told = []
        job = flow.submit()
        for change in job.watch():
            told.append(change)
            if change[1]["done"] < len(gates):
                gates[change[1]["done"]].set()
        assert told == everything
    assert list(job.watch()) == everything[-1:], "of a job that has ended, the last of each name"
    with pytest.raises(NotFound):
        list(app.job("nobody").watch())
    with pytest.raises(NotFound):
        app.job("nobody").values()


def test_values_go_with_their_job(timed, hand, clock):
    @timed.workflow
    def flow() -> None:
        set_value("stage", 1)

    job = flow.submit()
    hand.work()
    assert job.value("stage") == 1
    clock.advance(60_000)
    assert timed.prune(older_than="1s") == 1
    assert changes(timed, job) == {}


def test_what_cannot_be_shown_is_refused(app):
    @app.tx
    def write(_db) -> None:
        set_value("stage", 1)

    @app.workflow
    def flow() -> None:
        write()

    @app.workflow
    def wrong() -> None:
        with pytest.raises(BadInput):
            progress(3, 2)
        with pytest.raises(BadInput):
            set_value("no name", 1)
        for n in range(100):
            set_value(f"v{n}", n)
        with pytest.raises(BadInput, match="at most 100 values"):
            set_value("v100", 100)

    with pytest.raises(OutsideWorkflow):
        set_value("stage", 1)
    with app.worker():
        wrong.submit().result(30)
        with pytest.raises(JobFailed, match="beside the transaction"):
            flow.submit().result(30)
