"""A function that returns after it has swallowed its suspension is not believed, and its job is held."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tallystick import Delivered, Retry, aio, sleep, wait
from tests.elsewhere import elsewhere
from tests.patience import wait_until

NOT_BELIEVED = "SUSPEND_SWALLOWED"


def held(app, job) -> tuple[str | None, str]:
    row = job.row()
    return row.hold, row.hold_reason or ""


def test_a_bare_except_around_a_wait_holds_the_job_and_loses_nothing(timed, hand):
    mended = []

    @timed.workflow
    def flow() -> str:
        if mended:
            return wait("approve", str)
        try:
            return wait("approve", str)
        except BaseException:  # noqa: BLE001 (what a user must not write)
            return "nobody asked me"

    job = flow.submit()
    assert hand.work() == "HoldJob"
    hold, why = held(timed, job)
    assert hold == NOT_BELIEVED
    assert "suspended until approve#1 is answered" in why
    assert "let BaseException pass" in why
    assert job.state() == "IN_PROGRESS"
    assert job.send("approve", "yes") is Delivered.WOKE
    assert hand.work() == "idle"
    assert [event.name for event in job.history()][-2:] == ["suspend", "hold"]
    mended.append(1)
    job.resume()
    assert hand.work() == "EndJob"
    assert job.result(5) == "yes"


def test_a_return_in_finally_is_no_better(timed, hand):
    @timed.workflow
    def flow() -> int:
        try:
            sleep("1h")
        finally:
            return 1  # noqa: B012 (what a user must not write)

    job = flow.submit()
    assert hand.work() == "HoldJob"
    assert held(timed, job)[0] == NOT_BELIEVED


def test_an_async_workflow_that_collects_its_suspension_as_a_result_is_held(timed, hand):
    @timed.workflow
    async def flow() -> int:
        return len(await asyncio.gather(aio.wait("a", int), aio.wait("b", int), return_exceptions=True))

    job = flow.submit()
    assert hand.work() == "HoldJob"
    hold, why = held(timed, job)
    assert hold == NOT_BELIEVED
    assert "a#1, b#1" in why


def test_a_retry_that_waits_long_cannot_be_swallowed_either(timed, hand):
    @timed.step(retry=Retry(3, first="1h"))
    def fragile() -> None:
        raise OSError("away")

    @timed.workflow
    def flow() -> str:
        try:
            fragile()
        except BaseException:  # noqa: BLE001 (what a user must not write)
            return "never mind"
        return "fine"

    job = flow.submit()
    assert hand.work() == "EndAttempt"
    hold, why = held(timed, job)
    assert hold == NOT_BELIEVED
    assert "fragile is tried again" in why


def test_calls_made_while_unwinding_raise_it_again_and_write_nothing(timed, hand):
    ran = []

    @timed.step
    def clean_up() -> None:
        ran.append(1)

    @timed.workflow
    def flow() -> None:
        try:
            wait("go", bool)
        finally:
            clean_up()

    job = flow.submit()
    assert hand.work() == "Await"
    assert (held(timed, job)[0], ran) == (None, [])


def test_a_job_that_was_woken_in_the_meantime_is_not_held(timed, hand):
    @timed.workflow
    def flow() -> str:
        try:
            return wait("go", str)
        except BaseException:  # noqa: BLE001 (what a user must not write)
            elsewhere(job.send, "go", "now")
            assert hand.claim() is not None
            return "not believed"

    job = flow.submit()
    assert hand.work() == "HoldJob"
    assert held(timed, job)[0] is None
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "now"


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_real_worker_holds_it_too(app, colour):
    @app.workflow
    def sync() -> int:
        with suppress(BaseException):
            wait("go", int)
        return 1

    @app.workflow(name="async")
    async def colourful() -> int:
        with suppress(BaseException):
            await aio.wait("go", int)
        return 1

    with app.worker():
        job = {"sync": sync, "async": colourful}[colour].submit()
        wait_until(lambda: job.row().hold, "it is held")
    assert held(app, job)[0] == NOT_BELIEVED
