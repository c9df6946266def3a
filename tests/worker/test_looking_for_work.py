"""Looking for work: a job that becomes due while the worker looks is not overlooked."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.errors import StoreError
from tallystick.worker.options import WorkerOptions
from tallystick.worker.roles import look as looking
from tallystick.worker.roles.look import LookForWork
from tallystick.worker.roles.renew import Renew
from tests.patience import wait_until


def test_a_job_that_becomes_due_between_the_claim_and_the_look_is_asked_for_again():
    clock = VirtualClock()
    due_at = clock.wall_ms() + 1
    pokes = []

    def claim_finds_nothing_and_time_passes() -> None:
        pokes.append(clock.wall_ms())
        clock.advance(5)

    def next_due(_queues, after: int) -> int | None:
        return due_at if due_at > after else None

    store = SimpleNamespace(pulse=lambda: 1, next_due=next_due)
    worker = SimpleNamespace(
        clock=clock,
        store=store,
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=claim_finds_nothing_and_time_passes,
    )
    look = LookForWork(worker, retry=0.5)
    look.run()
    look.run()
    assert len(pokes) == 2


def test_what_was_written_while_a_claim_was_on_its_way_is_looked_for_when_it_is_back():
    """The claim may have read before the write, and its answer says that there is nothing."""
    pulses = iter([1, 1, 2, 2])
    pokes = []
    worker = SimpleNamespace(
        clock=VirtualClock(),
        store=SimpleNamespace(pulse=lambda: next(pulses), next_due=lambda queues, after: None),
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=lambda: pokes.append(1),
    )
    look = LookForWork(worker, retry=0.5)
    look.run()
    look.run()
    assert len(pokes) == 1
    worker.idle = False
    look.run()
    worker.idle = True
    look.run()
    assert len(pokes) == 2


def test_what_was_written_while_claims_failed_is_looked_for_when_they_work_again():
    """A job that is given back is due a moment later: who does not ask when, does not look then."""
    asked = []
    pulses = iter([1, 2, 2])
    worker = SimpleNamespace(
        clock=VirtualClock(),
        store=SimpleNamespace(pulse=lambda: next(pulses), next_due=lambda queues, after: asked.append(after)),
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=lambda: None,
    )
    look = LookForWork(worker, retry=0.5)
    look.run()
    worker.claim_failed = True
    look.run()
    worker.claim_failed = False
    look.run()
    assert len(asked) == 2


@pytest.mark.parametrize("fails", ["interrupted", "next_due"])
def test_what_a_round_that_failed_had_noticed_is_noticed_by_the_next(fails):
    calls = []

    def answering(name, answer):
        def call(*_arguments):
            calls.append(name)
            if name == fails and calls.count(name) == 1:
                raise StoreError("away for a moment")
            return answer

        return call

    store = SimpleNamespace(
        pulse=lambda: 2, next_due=answering("next_due", None), interrupted=answering("interrupted", [])
    )
    worker = SimpleNamespace(
        clock=VirtualClock(),
        store=store,
        options=WorkerOptions(),
        idle=True,
        running={"a job": None},
        claim_failed=False,
        notify=lambda job_id: None,
        poke=lambda: None,
    )
    look = LookForWork(worker, retry=0.5)
    with pytest.raises(StoreError):
        look.run()
    look.run()
    assert calls.count(fails) == 2


def test_an_idle_worker_hears_at_once_that_another_process_has_written(tmp_path, monkeypatch):
    """By itself it would look once a minute: only the ring of the other one can be the reason."""
    monkeypatch.setattr(looking, "LOOK_SECONDS_MIN", 60.0)
    monkeypatch.setattr(looking, "LOOK_SECONDS_MAX", 60.0)
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    app, elsewhere = Tally(url), Tally(url)

    def quick(n: int) -> int:
        return n

    flow, submitted = app.workflow(quick), elsewhere.workflow(quick)
    with app.worker():
        assert flow.submit(0).result(30) == 0
        wait_until(lambda: app.runtime().worker.idle)
        assert submitted.submit(1).result(30) == 1
        with elsewhere.transaction() as db:
            job = submitted.opts(within=db).submit(2)
        assert job.result(30) == 2
    elsewhere.close()
    app.close()
    assert not (tmp_path / "shop.db-bells").exists()


def test_a_job_that_has_just_ended_is_not_said_to_have_lost_its_lease(tmp_path, caplog):
    """Its end may be durable, and so its lease gone, a moment before the worker has been told."""
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")
    told, go_on = threading.Event(), threading.Event()

    @app.workflow
    async def quick() -> None:
        return None

    with app.worker():
        worker = app.runtime().worker
        ended = worker.ended

        def ended_later(*arguments) -> None:
            told.set()
            go_on.wait(20)
            ended(*arguments)

        worker.ended = ended_later
        job = quick.submit()
        assert told.wait(20)
        (segment,) = worker.running.values()
        Renew(worker).run()
        assert not segment.lost
        go_on.set()
        job.result(20)
    app.close()
    assert "lost the lease" not in caplog.text
