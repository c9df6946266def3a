"""A job that is held because an effect is in doubt is told to functions that watch, whatever has held it."""

from __future__ import annotations

import pytest

from tallystick import Key, Unknown
from tallystick.engine.observe import JobHeld
from tallystick.testing.stepping import ask_effects, die, reclaim

HOLDS = ["a call", "a lost worker", "a probe", "a resume"]


@pytest.mark.parametrize("by", HOLDS)
def test_a_hold_in_doubt_is_told_once(timed, hand, clock, by):
    told = []
    timed.runtime().observers.on(JobHeld, told.append)
    probe = {"probe": lambda key, order: Unknown(f"no idea of {key} and {order}")} if by == "a probe" else {}

    @timed.effect(key="{order}", timeout="2s", settle="1s", **probe)
    def charge(key: Key, order: int) -> str:
        if by == "a lost worker":
            die()
        raise ConnectionResetError("cut")

    @timed.workflow
    def buy() -> str:
        return charge(7)

    job = buy.submit()
    hand.work()
    if by == "a lost worker":
        assert told == []
        hand.expire()
        reclaim(timed)
    elif by == "a probe":
        assert told == []
        clock.advance(60_000)
        assert ask_effects(timed) == 1
    elif by == "a resume":
        told.clear()
        job.resume()
        assert hand.work() == "Await"
    assert job.row().hold == "IN_DOUBT"
    ((fence, handler, hold, why),) = told
    assert (fence.job_id, handler, hold, why) == (job.id, "buy", "IN_DOUBT", job.row().hold_reason)
