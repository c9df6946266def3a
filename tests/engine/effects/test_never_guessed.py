"""What nobody has said of a call is in doubt, however its errors are declared; turns end with true books."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from tallystick import Key, NotDone, Retry, again
from tallystick.testing.stepping import check_books
from tests.engine.audit.tampering import Books
from tests.patience import PATIENCE_SECONDS, wait_until

WIDE = [{"raises": [Exception]}, {"safe_errors": [Exception]}]


def effects(app) -> list[tuple]:
    with app.connect() as db:
        return [tuple(row) for row in db.execute("select phase, outcome, calls from effect_keys")]


@pytest.mark.parametrize("declared", WIDE, ids=["raises", "safe_errors"])
def test_an_async_call_whose_time_was_up_is_in_doubt_whatever_is_declared(timed, hand, declared):
    called = []

    @timed.effect(key="{n}", timeout="20ms", retry=Retry(3, first="1ms"), **declared)
    async def act(key: Key, n: int) -> str:
        called.append(n)
        await asyncio.sleep(20)
        return "never"

    @timed.workflow
    async def flow(n: int) -> str:
        return await act(n)

    job = flow.submit(1)
    hand.work()
    assert (effects(timed), called) == ([("IN_DOUBT", None, 1)], [1])
    assert (job.row().hold, check_books(timed)) == ("IN_DOUBT", [])


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("declared", WIDE, ids=["raises", "safe_errors"])
def test_a_call_that_returned_what_cannot_be_kept_has_not_failed(timed, hand, declared, colour):
    called = []

    def act(key: Key, n: int) -> str:
        called.append(n)
        return object()

    async def act_async(key: Key, n: int) -> str:
        return act(key, n)

    rules = {"key": "{n}", "timeout": "2s", "retry": Retry(3, first="1ms"), **declared}
    effect = timed.effect(name="act", **rules)(act if colour == "sync" else act_async)

    @timed.workflow(name="flow")
    def flow(n: int) -> str:
        return effect(n)

    @timed.workflow(name="flow_async")
    async def flow_async(n: int) -> str:
        return await effect(n)

    job = (flow if colour == "sync" else flow_async).submit(1)
    hand.work()
    assert (effects(timed), called) == ([("IN_DOUBT", None, 1)], [1])
    assert "what act returned cannot be kept" in job.why()
    job.resolve(happened="receipt", by="ann")
    hand.work()
    assert (job.result(1), called, check_books(timed)) == ("receipt", [1], [])


def test_a_function_that_raises_beside_a_call_which_is_in_doubt_then_is_put_away(timed, hand):
    begun, go = threading.Event(), threading.Event()

    @timed.effect(key="{n}", timeout="2s")
    def act(key: Key, n: int) -> str:
        begun.set()
        assert go.wait(PATIENCE_SECONDS)
        raise OSError("cut")

    @timed.workflow
    async def flow(n: int) -> str:
        acting = asyncio.create_task(act.aio(n))
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        asyncio.get_running_loop().call_soon(go.set)
        raise ValueError(f"something else than {acting}")

    job = flow.submit(1)
    assert hand.work() == "Await", "its end was not refused as that of an older lease"
    assert (effects(timed), job.row().hold, check_books(timed)) == ([("IN_DOUBT", None, 1)], "IN_DOUBT", [])
    job.resolve(happened="receipt", by="ann")
    hand.work_all()
    assert (job.state(), effects(timed), check_books(timed)) == (
        "FAILED_FINAL",
        [("ENDED", "HAPPENED", 1)],
        [],
    )


def test_an_effect_that_ends_with_its_turn_is_on_the_books(timed, hand, clock, url):
    """Its task was cancelled while it rested: nothing of it is open, and no message tells its step."""

    @timed.effect(key="{n}", timeout="2s", retry=Retry(3, first="1m"))
    def act(key: Key, n: int) -> str:
        raise NotDone("busy")

    @timed.step
    async def rested() -> None:
        await asyncio.to_thread(wait_until, lambda: ("RESTING", None, 1) in effects(timed))

    @timed.workflow
    async def loop(n: int) -> str:
        if n == 2:
            return "over"
        acting = asyncio.create_task(act.aio(n))
        await rested()
        acting.cancel()
        with suppress(asyncio.CancelledError):
            await acting
        return again(n + 1)

    job = loop.submit(0)
    for _ in range(2):
        clock.advance(1_000)
        assert hand.work() == "Cycle"
        assert check_books(timed) == []
    clock.advance(1_000)
    hand.work()
    assert (job.result(1), effects(timed)) == ("over", [("ENDED", "NOT_DONE", 1)] * 2)
    assert check_books(timed) == []
    books = Books(url, timed.runtime().store.inspect())
    books.db.run("update effect_keys set ended_at = ended_at + 1 where key = '0'")
    books.db.run("update attempts set finished_at = finished_at + 1 where unit = '0/act#1'")
    books.close()
    assert [finding.check for finding in check_books(timed)] == ["effects"]
