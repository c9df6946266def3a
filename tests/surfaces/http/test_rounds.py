"""What a server does beside requests goes on, whatever error one round of it meets."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tallystick import RemoteStep, Tally
from tallystick.clock import SystemClock
from tallystick.http import api, http_app
from tests.patience import wait_until
from tests.surfaces.http.served import COMMAND, sqlite_url


class FailingClock(SystemClock):
    """A clock that other threads than the first cannot read for a few times."""

    def __init__(self) -> None:
        self.fails = 0

    def wall_ms(self) -> int:
        if self.fails and threading.current_thread() is not threading.main_thread():
            self.fails -= 1
            raise ValueError(f"no time here, {'first' if self.fails else 'last'}")
        return super().wall_ms()


def test_an_error_that_nobody_expects_does_not_end_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(api, "SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(api, "SWEEP_SECONDS_MAX", 0.05)
    caplog.set_level(logging.WARNING, "tallystick.http")
    clock = FailingClock()
    app = Tally(sqlite_url(tmp_path), clock=clock)
    ocr = RemoteStep("ocr", service="ocr")
    app.protocol("scan", request_types=["scan"], steps=[ocr], start_within="10ms")

    async def serve() -> None:
        served = http_app(app, sweeps=True).api
        job = app.command(COMMAND)
        clock.fails = 4
        served.begin()
        await asyncio.to_thread(wait_until, lambda: job.row().state == "FAILED_FINAL", "a sweep that goes on")
        await served.stop()

    with closing(app):
        asyncio.run(serve())
    told = [each for each in caplog.records if getattr(each, "action", "") == "round.failed"]
    # Each once, and with all that is known of it.
    assert [each.getMessage() for each in told] == [
        f"serving: a round failed: no time here, {which}" for which in ("first", "last")
    ]
    assert all(each.exc_info for each in told)
