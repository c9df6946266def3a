"""A slot that becomes free and somebody who says that there is work never miss each other."""

from __future__ import annotations

import threading

from tallystick import Tally
from tests.patience import wait_until


def test_a_poke_while_the_last_job_of_a_slot_is_being_ended_is_heard(app, url, monkeypatch):
    """The slot had decided not to ask for more, and nobody else asks: the other slot is busy for long."""
    leave, go_on = threading.Event(), threading.Event()

    @app.workflow
    def waits(event: str) -> str:
        assert (leave if event == "leave" else go_on).wait(60)
        return event

    @app.workflow
    def quick() -> str:
        return "done"

    runtime = app.runtime()
    first = waits.submit("leave")
    with app.worker(concurrency=2):
        worker = runtime.worker
        wait_until(lambda: worker.running and worker.idle)
        second = waits.submit("go on")
        wait_until(lambda: len(worker.running) == 2)
        apply = runtime.store.apply

        def poked_meanwhile(batch):
            if any(type(part).__name__ == "EndJob" for bundle in batch for part in bundle):
                worker.poke()
            return apply(batch)

        monkeypatch.setattr(runtime.store, "apply", poked_meanwhile)
        elsewhere = Tally(url)
        elsewhere.workflow(quick.fn)
        third = elsewhere.workflows["quick", ""].submit()
        leave.set()
        assert first.result(30) == "leave"
        assert app.job(third.id).result(10) == "done"
        elsewhere.close()
        go_on.set()
        assert second.result(30) == "go on"


def test_a_job_that_is_durable_after_the_last_look_is_found_without_anybody_else_looking(app, monkeypatch):
    """It was submitted when no slot was free; the slot looked, found nothing, and rests."""
    leave = threading.Event()

    @app.workflow
    def waits() -> str:
        assert leave.wait(60)
        return "left"

    @app.workflow
    def quick() -> str:
        return "done"

    runtime = app.runtime()
    with app.worker(concurrency=1):
        worker = runtime.worker
        first = waits.submit()
        wait_until(lambda: worker.running)
        runtime._maintenance.stop()
        call = runtime.committer.call

        def late(bundle):
            leave.set()
            wait_until(lambda: worker.idle)
            return call(bundle)

        monkeypatch.setattr(runtime.committer, "call", late)
        second = quick.submit()
        assert first.result(30) == "left"
        assert second.result(10) == "done"
