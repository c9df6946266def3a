"""Calls of effects side by side: one in doubt ends the segment when it is known what came of the others."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import Key, NotDone, Retry, thread_map
from tallystick.app.effects.resolving import late_reports
from tallystick.app.effects.side_by_side import EffectCalls
from tallystick.testing.stepping import check_books, reclaim
from tests.patience import PATIENCE_SECONDS


def effects(app) -> dict[str, tuple]:
    with app.connect() as db:
        found = db.execute("select key, phase, outcome, doubt from effect_keys")
        return {key: (phase, outcome, doubt) for key, phase, outcome, doubt in found}


@pytest.fixture
def in_doubt(monkeypatch):
    """Set as soon as a call is in doubt, before that is written down."""
    seen = threading.Event()
    doubt = EffectCalls.doubt

    def seen_doubt(calls, call):
        others = doubt(calls, call)
        seen.set()
        return others

    monkeypatch.setattr(EffectCalls, "doubt", seen_doubt)
    return seen


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_call_that_is_under_way_says_what_came_of_it_before_another_is_in_doubt(
    timed, hand, in_doubt, colour
):
    begun = threading.Event()
    called = []

    @timed.effect(key="cut{n}", name="cut", timeout="30s")
    def cut(key: Key, n: int) -> str:
        assert begun.wait(PATIENCE_SECONDS)
        raise ConnectionResetError("cut")

    def slow(key: Key, n: int) -> str:
        begun.set()
        assert in_doubt.wait(PATIENCE_SECONDS)
        return "sent"

    async def slow_async(key: Key, n: int) -> str:
        return await asyncio.to_thread(slow, key, n)

    send = timed.effect(key="send{n}", name="send", timeout="30s")(slow if colour == "sync" else slow_async)

    @timed.effect(key="next{n}", timeout="30s")
    async def following(key: Key, n: int) -> str:
        called.append(key)
        return "next"

    @timed.workflow
    async def flow() -> list[str]:
        async def chain() -> str:
            first = await (send.aio(1) if colour == "sync" else send(1))
            return f"{first}, {await following(1)}"

        return list(await asyncio.gather(cut.aio(1), chain()))

    job = flow.submit()
    assert hand.work() == "Await"
    assert effects(timed) == {
        "cut1": ("IN_DOUBT", None, "ConnectionResetError: cut"),
        "send1": ("ENDED", "HAPPENED", None),
    }
    # No call began after the doubt, and none was too late.
    assert (called, job.row().hold, check_books(timed)) == ([], "IN_DOUBT", [])
    with timed.connect() as db:
        assert list(db.execute("select report from stale_reports")) == []
    job.resolve(happened="known", by="ann")
    assert (hand.work(), job.result(1)) == ("EndJob", ["known", "sent, next"])
    assert (called, check_books(timed)) == (["next1"], [])


def test_threads_of_a_workflow_wait_for_each_other_too(timed, hand, in_doubt):
    begun = threading.Event()

    @timed.effect(key="{what}", timeout="30s")
    def act(key: Key, what: str) -> str:
        if what == "cut":
            assert begun.wait(PATIENCE_SECONDS)
            raise ConnectionResetError("cut")
        begun.set()
        assert in_doubt.wait(PATIENCE_SECONDS)
        return what

    @timed.workflow
    def flow() -> list[str]:
        return thread_map(lambda what: act.named(what)(what), ["cut", "send"])

    job = flow.submit()
    assert hand.work() == "Await"
    assert effects(timed) == {
        "cut": ("IN_DOUBT", None, "ConnectionResetError: cut"),
        "send": ("ENDED", "HAPPENED", None),
    }
    assert (job.row().hold, check_books(timed)) == ("IN_DOUBT", [])


def test_two_in_doubt_at_once_do_not_wait_for_each_other(timed, hand):
    @timed.effect(key="{what}", timeout="2s")
    async def act(key: Key, what: str) -> str:
        raise ConnectionResetError(what)

    @timed.workflow
    async def flow() -> list[str]:
        return list(await asyncio.gather(act("a"), act("b")))

    job = flow.submit()
    assert hand.work() == "Await"
    hand.expire()
    reclaim(timed)
    assert {phase for phase, _outcome, _doubt in effects(timed).values()} == {"IN_DOUBT"}
    # The first has ended the segment; what the second said is there for people.
    ((_at, report),) = late_reports(timed.runtime(), job.id)
    assert report in (
        "DoubtEffect 0/act#1: ConnectionResetError: a",
        "DoubtEffect 0/act#2: ConnectionResetError: b",
    )
    assert check_books(timed) == []


def test_a_function_that_is_left_for_a_long_pause_waits_for_the_call_beside(timed, hand, clock):
    rested = threading.Event()
    begun = threading.Event()
    tries = []

    @timed.effect(key="busy{n}", retry=Retry(2, first="1h"))
    async def busy(key: Key, n: int) -> str:
        tries.append(key)
        if len(tries) > 1:
            return "done"
        await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        rested.set()
        raise NotDone("busy")

    @timed.effect(key="send{n}", timeout="30s")
    def send(key: Key, n: int) -> str:
        begun.set()
        assert rested.wait(PATIENCE_SECONDS)
        return "sent"

    @timed.workflow
    async def flow() -> list[str]:
        return list(await asyncio.gather(busy(1), send.aio(1)))

    job = flow.submit()
    assert hand.work() == "EndAttempt"
    assert effects(timed) == {"busy1": ("RESTING", None, None), "send1": ("ENDED", "HAPPENED", None)}
    clock.advance(3_600_000)
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", ["done", "sent"], [])
