"""Signals that wait already: an answer brings those behind it, and taking them costs no flush each.

What was taken and not written may be forgotten by a crash. Nothing may have seen it then but the function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import Cancelled, again, aio, now, wait
from tallystick.testing.stepping import Death, count_flushes
from tests.app import digits_by_hand as expected
from tests.app.books.test_digits import Ledgers

MANY = 600
# One for the claim, then for 1, 1 + 8, 1 + 16, ... 1 + 256 signals, and the end.
FLUSHES_MAX = 10
SECONDS = 30


def taking(app, colour, after=None):
    """Declare a workflow that takes so many numbers and returns them; `after` is called with each."""
    if colour == "sync":

        @app.workflow
        def take(count: int) -> list[int]:
            got = []
            for _ in range(count):
                got.append(wait("go", int))
                if after is not None:
                    after(got)
            return got

        return take

    @app.workflow
    async def take_async(count: int) -> list[int]:
        got = []
        for _ in range(count):
            got.append(await aio.wait("go", int))
            if after is not None:
                after(got)
        return got

    return take_async


def elsewhere(act: Callable[[], object]) -> None:
    """Do something in a thread of its own, as another program would; a workflow may not do it itself."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result(SECONDS)


def send(job, count: int) -> None:
    """Send the numbers from 0 on."""
    for n in range(count):
        job.send("go", n)


def waits(app, job) -> int:
    """Return how many waits of a job are recorded."""
    return sum(event.name == "wait" for event in job.history())


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_many_signals_are_taken_in_a_few_flushes_in_their_order(timed, hand, colour):
    job = taking(timed, colour).submit(MANY)
    send(job, MANY)
    before = count_flushes(timed)
    assert hand.work() == "EndJob"
    assert count_flushes(timed) - before <= FLUSHES_MAX
    assert job.result(5) == list(range(MANY))
    assert waits(timed, job) == MANY
    ledgers = Ledgers(timed, job)
    assert set(ledgers.activities().values()) == {expected.EARLY_SIGNAL[0]}
    assert set(ledgers.messages()) == {expected.EARLY_SIGNAL[1]}


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_what_a_crash_forgets_is_taken_again_in_the_same_order(timed, hand, colour):
    seen: list[list[int]] = []

    def dies(got: list[int]) -> None:
        if len(got) == 20 and len(seen) < 3:
            seen.append(list(got))
            raise Death

    job = taking(timed, colour, dies).submit(30)
    send(job, 30)
    recorded = []
    for _ in range(3):
        assert hand.work() == "died"
        recorded.append(waits(timed, job))
        hand.expire()
        timed.send_many([job], "other", 1)
    assert hand.work() == "EndJob"
    assert recorded[0] < 20, "nothing was forgotten"
    assert seen == [list(range(20))] * 3
    assert job.result(5) == list(range(30))


@pytest.mark.parametrize("kind", ["step", "tx"])
@pytest.mark.parametrize("colour", ["sync", "async"])
def test_nothing_outside_sees_a_value_before_it_is_recorded(timed, hand, colour, kind):
    recorded: list[int] = []

    def note(*_given: object) -> int:
        recorded.append(waits(timed, job))
        return 0

    def look_once(n: int) -> int:
        return note(n)

    def look_in_tx(db: object, n: int) -> int:
        return note(db, n)

    look = timed.step(look_once) if kind == "step" else timed.tx(look_in_tx)
    if colour == "sync":

        @timed.workflow
        def flow() -> None:
            for _ in range(6):
                wait("go", int)
                wait("go", int)
                look(1)

    else:

        @timed.workflow
        async def flow() -> None:
            for _ in range(6):
                await aio.wait("go", int)
                await aio.wait("go", int)
                await look.aio(1)

    job = flow.submit()
    send(job, 12)
    hand.work_all()
    assert job.result(5) is None
    assert recorded == [2, 4, 6, 8, 10, 12]


def test_a_turn_keeps_what_it_has_taken_and_leaves_what_it_has_not(timed, hand):
    @timed.workflow
    def flow(got: list[int]) -> list[int]:
        got = [*got, wait("go", int), wait("go", int), wait("go", int)]
        if len(got) < 9:
            again(got)
        return got

    job = flow.submit([])
    send(job, 9)
    hand.work_all()
    assert job.result(5) == list(range(9))


def test_two_names_are_each_taken_in_their_order(timed, hand):
    @timed.workflow
    def flow() -> list[list[int]]:
        return [[wait("go", int), wait("stay", int)] for _ in range(40)]

    job = flow.submit()
    for number in range(40):
        job.send("stay", -number)
        job.send("go", number)
    before = count_flushes(timed)
    hand.work_all()
    assert count_flushes(timed) - before < 40
    assert job.result(5) == [[number, -number] for number in range(40)]


def test_several_takers_at_once_ask_the_store(timed, hand):
    @timed.workflow
    async def flow() -> list[int]:
        first = await aio.wait("go", int)
        others = await asyncio.gather(*(aio.wait("go", int) for _ in range(5)))
        return [first, *others, await aio.wait("go", int)]

    job = flow.submit()
    send(job, 7)
    hand.work_all()
    assert job.result(5) == list(range(7))


def test_a_wait_with_a_time_limit_takes_the_next_signal_too(timed, hand):
    @timed.workflow
    def flow() -> list[int | None]:
        return [wait("go", int), wait("go", int), wait("go", int, timeout="1h"), wait("go", int)]

    job = flow.submit()
    send(job, 4)
    hand.work_all()
    assert job.result(5) == [0, 1, 2, 3]


def test_values_drawn_between_waits_are_kept(timed, hand):
    drawn: list[object] = []

    @timed.workflow
    def flow() -> None:
        for _ in range(5):
            wait("go", int)
            drawn.append(now())
        wait("more", int)

    job = flow.submit()
    send(job, 5)
    assert hand.work() == "Await", "it is put away"
    hand.clock.advance(5_000)
    job.send("more", 1)
    hand.work_all()
    assert len(drawn) == 10
    assert drawn[:5] == drawn[5:]


def test_who_is_asked_to_end_hears_of_it_behind_what_was_taken(timed, hand):
    """What was taken is recorded with the end, and what was not is dropped."""

    @timed.workflow
    def flow() -> None:
        try:
            while True:
                if wait("go", int) == 3:
                    elsewhere(lambda: job.cancel(grace="1s"))
                    segment.cancelled = True
        except Cancelled:
            raised.append(True)
            raise

    raised: list[bool] = []
    job = flow.submit()
    send(job, 8)
    segment = hand.claim()
    assert hand.run(segment) == "EndJob"
    assert raised
    assert job.state() == "CANCELLED"
    assert waits(timed, job) == 4


def test_who_is_held_goes_on_where_it_was(timed, hand):
    got: list[int] = []

    @timed.workflow
    def flow() -> list[int]:
        values = []
        for _ in range(8):
            values.append(wait("go", int))
            got.append(values[-1])
            if len(got) == 4:
                elsewhere(lambda: job.pause("a rest"))
                segment.paused = True
        return values

    job = flow.submit()
    send(job, 8)
    segment = hand.claim()
    assert hand.run(segment) == "EndAttempt"
    job.resume()
    hand.work_all()
    assert job.result(5) == list(range(8))
