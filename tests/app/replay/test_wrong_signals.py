"""A signal whose value does not fit the type of its wait is put aside, and the job goes on waiting."""

from __future__ import annotations

import logging

import pytest

from tallystick import Tally, aio, wait
from tallystick.testing.stepping import Death, SteppedWorker, check_books


@pytest.fixture(params=["sync", "async"])
def approval(timed, request):
    """A workflow that waits twice, of each colour in turn, and dies between the waits when it is told to."""
    deaths = []

    @timed.step
    def note(said: bool) -> bool:
        return said

    @timed.step
    async def note_async(said: bool) -> bool:
        return said

    @timed.workflow(name="sync_approval")
    def sync_approval() -> list[bool]:
        first = note(wait("approve", bool))
        if deaths and deaths.pop():
            raise Death
        return [first, wait("approve", bool)]

    @timed.workflow(name="async_approval")
    async def async_approval() -> list[bool]:
        first = await note_async(await aio.wait("approve", bool))
        if deaths and deaths.pop():
            raise Death
        return [first, await aio.wait("approve", bool)]

    return (sync_approval if request.param == "sync" else async_approval), deaths


def put_aside(caplog):
    return [record for record in caplog.records if getattr(record, "action", "") == "signal.put_aside"]


def test_a_value_of_a_wrong_type_is_put_aside_and_the_next_one_taken(timed, hand, approval, caplog):
    workflow, _deaths = approval
    job = workflow.submit()
    with caplog.at_level(logging.WARNING, "tallystick.app"):
        assert hand.work() == "Await"
        job.send("approve", "yes please")
        assert hand.work() == "Await"
        job.send("approve", True)
        hand.work_all()
        job.send("approve", {"yes": 1})
        job.send("approve", False)
        hand.work_all()
    assert job.result(5) == [True, False]
    first, second = put_aside(caplog)
    assert job.id in first.getMessage()
    assert "the signal approve does not fit its annotation bool" in first.getMessage()
    assert second.levelname == "WARNING"
    # It is on the books, with its value.
    assert sum("yes please" in event.payload for event in job.history()) == 1
    assert check_books(timed) == []


def test_what_was_put_aside_stays_so_through_a_crash_and_is_told_once(timed, hand, approval, caplog):
    workflow, deaths = approval
    deaths.append(True)
    job = workflow.submit()
    for value in ("yes", True, "no", False):
        job.send("approve", value)
    with caplog.at_level(logging.WARNING, "tallystick.app"):
        assert hand.work() == "died"
        hand.expire()
        hand.work_all()
    assert job.result(5) == [True, False]
    assert len(put_aside(caplog)) == 2
    assert check_books(timed) == []


def test_a_wait_with_a_timeout_begins_anew_behind_a_wrong_value(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        return str(wait("number", int, timeout="1h"))

    job = flow.submit()
    hand.work()
    job.send("number", "three")
    assert hand.work() == "Await"
    clock.advance(3_600_000)
    hand.work_all()
    assert job.result(5) == "None"


def test_a_type_that_is_changed_so_that_an_old_value_fits_holds_the_job(url, clock):
    def program(tally, kind):
        @tally.workflow
        def flow() -> str:
            return f"{wait('number', kind)} {wait('end', str)}"

        return flow

    old, new = Tally(url, clock=clock), Tally(url, clock=clock)
    try:
        job = program(old, int).submit()
        program(new, int | str)
        job.send("number", "three")
        job.send("number", 3)
        SteppedWorker(old, clock).work_all()
        job.send("end", "end")
        SteppedWorker(new, clock).work_all()
        assert new.job(job.id).row().hold == "MISMATCH"
    finally:
        old.close()
        new.close()
