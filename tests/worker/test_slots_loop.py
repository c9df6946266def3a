"""The loop of async workflows: one that is blocked is left behind."""

from __future__ import annotations

import threading

from tallystick.worker import slots_loop

SECONDS = 20


def test_a_loop_that_is_blocked_does_not_keep_a_tally_from_closing(app, monkeypatch):
    monkeypatch.setattr(slots_loop, "_END_SECONDS", 0.1)
    begun, go = threading.Event(), threading.Event()

    @app.step
    async def blocks() -> None:
        begun.set()
        go.wait(SECONDS)

    @app.workflow
    async def flow() -> None:
        await blocks()

    with app.worker(grace="10ms"):
        flow.submit()
        assert begun.wait(SECONDS)
    app.close()
    go.set()
    for thread in threading.enumerate():
        if thread.name == "tally-loop":
            thread.join(SECONDS)


def test_a_lease_that_is_lost_when_the_loop_has_ended_stops_nothing_and_raises_nothing(app):
    @app.workflow
    async def flow() -> int:
        return 1

    with app.worker():
        assert flow.submit().result(SECONDS) == 1
        worker = app.runtime().worker
    worker.stop_task(None)
