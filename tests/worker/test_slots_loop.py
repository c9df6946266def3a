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
