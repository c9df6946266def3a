"""A step's result is handed over: the ending may join it, and nothing new begins before it is durable."""

from __future__ import annotations

import threading

import pytest

from tallystick import StepFailed, now
from tallystick.testing.stepping import LEASE_MS


@pytest.fixture
def batches(app, monkeypatch):
    """Everything that is written, bundle by bundle, as the kinds of its parts."""
    written = []
    store = app.runtime().store
    apply = store.apply

    def spy(batch):
        written.extend(tuple(type(part).__name__ for part in bundle) for bundle in batch)
        return apply(batch)

    monkeypatch.setattr(store, "apply", spy)
    return written


def test_the_last_step_of_an_async_workflow_shares_a_bundle_with_its_end(app, batches):
    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def flow(n: int) -> int:
        return await double(await double(n))

    with app.worker():
        assert flow.submit(3).result(30) == 12
    assert ("RecordStep",) in batches
    assert ("RecordStep", "EndJob") in batches
    assert ("EndJob",) not in batches


def test_the_end_of_a_sync_workflow_joins_its_last_step_if_that_has_not_left(app, batches, monkeypatch):
    """The committer is held back, so that the step must still be there when the function returns."""
    runtime = app.runtime()
    leave = threading.Event()
    writing = threading.Event()
    apply = runtime.store.apply

    def slowly(batch):
        if any(type(part).__name__ == "RecordStep" for bundle in batch for part in bundle):
            return apply(batch)
        writing.set()
        assert leave.wait(30)
        return apply(batch)

    @app.step
    def double(n: int) -> int:
        runtime.store.apply = slowly
        threading.Thread(target=other.submit, args=(1,), daemon=True).start()
        assert writing.wait(30)
        return 2 * n

    @app.workflow
    def flow(n: int) -> int:
        return double(n)

    @app.workflow
    def other(n: int) -> int:
        return n

    extend = runtime.committer.extend

    def extended(*joining):
        try:
            return extend(*joining)
        finally:
            leave.set()

    monkeypatch.setattr(runtime.committer, "extend", extended)
    with app.worker(concurrency=2):
        assert flow.submit(3).result(30) == 6
        runtime.store.apply = apply
    assert ("RecordStep", "EndJob") in batches


def test_a_step_is_durable_before_the_next_body_starts(app):
    seen = []

    @app.step
    def look(job_id: str) -> int:
        seen.append(len([e for e in app.runtime().store.history(job_id) if e.type == "step"]))
        return len(seen)

    @app.workflow
    def flow() -> int:
        for _ in range(5):
            look(job_ids[0])
        return len(seen)

    job_ids = []
    job = flow.submit()
    job_ids.append(job.id)
    with app.worker():
        assert job.result(30) == 5
    assert seen == [0, 1, 2, 3, 4]


def test_nothing_begins_after_a_step_that_was_refused(timed, hand, clock):
    bodies = []

    @timed.step
    def slow() -> None:
        bodies.append("slow")
        if len(bodies) == 1:
            clock.advance(LEASE_MS)

    @timed.step
    def following() -> None:
        bodies.append("following")

    @timed.workflow
    def flow() -> None:
        slow()
        following()

    job = flow.submit()
    assert hand.work() == "lost"
    assert bodies == ["slow"]
    hand.expire()
    assert hand.work() == "EndJob"
    assert bodies == ["slow", "slow", "following"]
    assert job.result(5) is None


def test_what_was_drawn_travels_once_with_the_step_it_was_drawn_for(timed, hand):
    @timed.step
    def mark(text: str) -> str:
        return text

    @timed.workflow
    def flow() -> str:
        return mark(now().isoformat())

    job = flow.submit()
    assert hand.work() == "EndJob"
    (record,) = [e for e in timed.runtime().store.history(job.id) if e.type == "step"]
    (end,) = [e for e in timed.runtime().store.history(job.id) if e.type == "return"]
    assert "now#1" in record.payload
    assert "now#1" not in end.payload


def test_a_workflow_that_fails_after_its_step_fails_with_the_step_recorded(app, batches):
    @app.step
    async def fine() -> None: ...

    @app.workflow
    async def flow() -> None:
        await fine()
        raise StepFailed("x", "y", "z", None, 1)

    with app.worker():
        job = flow.submit()
        with pytest.raises(Exception, match="failed"):
            job.result(30)
    assert [e.type for e in app.runtime().store.history(job.id)][-2:] == ["step", "fail"]
    assert not any("EndAttempt" in bundle for bundle in batches)
