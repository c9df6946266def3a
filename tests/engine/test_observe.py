"""The seam for watching: each kind of happening is told, and what a listener does changes nothing."""

from __future__ import annotations

import logging

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.engine import observe
from tallystick.engine.observe import Observers
from tallystick.testing.stepping import SteppedWorker
from tests.patience import wait_until

PATIENCE = 20


@pytest.fixture
def app(tmp_path):
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")
    yield app
    app.close()


def heard(app: Tally, kind: type) -> list:
    told = []
    app.runtime().observers.on(kind, told.append)
    return told


def test_flushes_claims_and_ends_are_told(app):
    @app.workflow
    def flow(n: int) -> int:
        return n

    flushes, claims, ends = (
        heard(app, kind) for kind in (observe.Flushed, observe.Claimed, observe.JobFinished)
    )
    jobs = [flow.submit(n) for n in range(3)]
    with app.worker(concurrency=2):
        assert [job.result(PATIENCE) for job in jobs] == [0, 1, 2]
        jobs.append(flow.submit(3))  # it is claimed by the bundle that submits it
        assert jobs[-1].result(PATIENCE) == 3
    assert {claimed.fence.job_id for claim in claims for claimed in claim.jobs} == {job.id for job in jobs}
    assert {(end.fence.job_id, end.handler, end.state) for end in ends} == {
        (job.id, "flow", "SUCCEEDED") for job in jobs
    }
    assert sum(flush.bundles for flush in flushes) >= 6
    assert all(flush.seconds > 0 and not flush.failed for flush in flushes)


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_job_that_fails_is_logged_once_with_its_fields(app, caplog, colour):
    def raises() -> None:
        raise ValueError("no such order")

    async def raises_async() -> None:
        raise ValueError("no such order")

    flow = app.workflow(attempts=1)(raises if colour == "sync" else raises_async)
    with caplog.at_level(logging.INFO, "tallystick.job"), app.worker():
        job = flow.submit()
        wait_until(lambda: job.state() == "FAILED_FINAL")
    (record,) = [record for record in caplog.records if record.name == "tallystick.job"]
    assert (record.action, record.job_id, record.workflow) == ("job.failed", job.id, flow.name)
    assert "no such order" in record.getMessage()


def test_a_job_that_is_held_is_told_and_logged(app, caplog):
    version = {"steps": ["first"]}

    def body() -> None:
        for name in version["steps"]:
            app_steps[name]()
        again_later()

    app_steps = {name: app.step(name=name)(lambda: None) for name in ("first", "other")}

    @app.step
    def again_later() -> None:
        if version["steps"] == ["first"]:
            raise ConnectionError

    flow = app.workflow(name="flow")(body)
    held = heard(app, observe.JobHeld)
    with caplog.at_level(logging.INFO, "tallystick.job"), app.worker():
        job = flow.submit()
        wait_until(lambda: job.state() == "FAILED_FINAL")
        version["steps"] = ["other"]
        fork = job.fork(at="again_later")
        wait_until(lambda: fork.row().hold == "MISMATCH")
        wait_until(lambda: held)
    assert [(each.fence.job_id, each.hold) for each in held] == [(fork.id, "MISMATCH")]
    assert [record.job_id for record in caplog.records if record.action == "job.held"] == [fork.id]


def test_the_lease_of_a_lost_worker_is_told_with_what_became_of_it(tmp_path, caplog):
    clock = VirtualClock()
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}", clock=clock)

    @app.workflow
    def flow() -> None: ...

    job = flow.submit()
    told, hand = heard(app, observe.Reclaimed), SteppedWorker(app, clock)
    assert hand.claim() is not None
    assert hand.expire() == 1
    app.close()
    ((fence, became),) = told
    assert (fence.job_id, became.name) == (job.id, "RETRY")
    assert [record.job_id for record in caplog.records if record.action == "job.reclaimed"] == [job.id]


def test_a_listener_that_raises_is_logged_and_the_others_hear(caplog):
    observers, told = Observers(), []

    def broken(_flush: observe.Flushed) -> None:
        raise RuntimeError("not my day")

    observers.on(observe.Flushed, broken)
    stop = observers.on(observe.Flushed, told.append)
    observers.tell(observe.Flushed(1, 0.1, failed=False))
    assert len(told) == 1
    assert [record.action for record in caplog.records] == ["listener.failed"]
    stop()
    observers.tell(observe.Flushed(1, 0.1, failed=False))
    assert len(told) == 1


def test_what_no_function_asked_for_is_not_made():
    observers = Observers()
    assert observe.Flushed not in observers.wanted
    stop = observers.on(observe.Flushed, lambda _flush: None)
    assert observe.Flushed in observers.wanted
    stop()
    assert observe.Flushed not in observers.wanted
