"""A person lets an effect be called again in doubt: what the call before has done is still to be said."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import DidNotHappen, Key, NotDone, Retry
from tallystick.errors import BadValue, NotResolved
from tallystick.testing.stepping import ask_effects, cancel_overdue, check_books, die, reclaim

SETTLE_MS = 60_000


class Post:
    """What is outside: it sends whatever it is given, and knows of no keys."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.then = die

    def send(self, key: str) -> int:
        self.sent.append(key)
        self.then()
        return len(self.sent)


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def letter(timed, post):
    """A workflow whose effect cannot be probed."""

    @timed.effect(key="mail:{to}", timeout="2s", retry=Retry(2, first="1ms"))
    def mail(key: Key, to: str) -> int:
        return post.send(key)

    @timed.workflow
    def write(to: str) -> int:
        return mail(to)

    return write


@pytest.fixture
def held(timed, hand, letter):
    """A job whose worker died after it had acted, so that a person is asked."""
    job = letter.submit("ann")
    assert hand.work() == "died"
    hand.expire()
    assert (reclaim(timed), job.row().hold) == (1, "IN_DOUBT")
    return job


def standing(app) -> list[tuple]:
    with app.connect() as db:
        found = db.execute("select phase, outcome, calls, ended_by from effect_keys order by created_at, key")
        return [tuple(row) for row in found]


def test_a_job_that_is_to_end_calls_nothing_again(timed, held, post):
    assert held.cancel() == "CANCELLING"
    with pytest.raises(NotResolved, match="has ended or was asked to, so it is not called again"):
        held.resolve(retry=True, by="ann")
    assert (standing(timed), check_books(timed)) == ([("IN_DOUBT", None, 1, None)], [])
    held.resolve(happened=1, by="ann")
    cancel_overdue(timed)
    assert (held.row().state, standing(timed)) == ("CANCELLED", [("ENDED", "HAPPENED", 1, "ann")])
    assert (post.sent, check_books(timed)) == (["mail:ann"], [])


def test_a_cancel_before_the_call_leaves_it_in_doubt(timed, hand, held, letter, post):
    held.resolve(retry=True, by="ann")
    assert (held.row().hold, standing(timed)) == (None, [("RESTING", None, 1, None)])
    assert held.cancel() == "CANCELLING"
    assert (standing(timed), check_books(timed)) == ([("IN_DOUBT", None, 1, None)], [])
    # The key is not free: another job that comes to it waits instead of sending a second letter.
    second = letter.submit("ann")
    post.then = lambda: None
    hand.work()
    assert (second.row().state, post.sent) == ("IN_PROGRESS", ["mail:ann"])
    held.resolve(happened=1, by="ann")
    cancel_overdue(timed)
    assert (held.row().state, hand.work(), second.result(1)) == ("CANCELLED", "EndJob", 1)
    assert (post.sent, check_books(timed)) == (["mail:ann"], [])


def test_a_forced_end_before_the_call_leaves_it_in_doubt(timed, held, post):
    held.resolve(retry=True, by="ann")
    assert held.cancel(force=True) == "CANCELLED"
    assert (standing(timed), check_books(timed)) == ([("IN_DOUBT", None, 1, None)], [])
    timed.resolve(key="mail:ann", happened=1, by="ann")
    assert (standing(timed), check_books(timed)) == ([("ENDED", "HAPPENED", 1, "ann")], [])


def test_a_second_call_that_does_nothing_says_nothing_of_the_first(timed, hand, held, post):
    def refuse() -> None:
        raise NotDone("busy")

    post.then = refuse
    held.resolve(retry=True, by="ann")
    hand.work()
    assert (held.row().hold, standing(timed)) == ("IN_DOUBT", [("IN_DOUBT", None, 2, None)])
    assert "its worker was lost" in held.row().hold_reason
    assert check_books(timed) == []
    held.resolve(happened=1, by="ann")
    assert (hand.work(), held.result(1), check_books(timed)) == ("EndJob", 1, [])


def test_an_answer_may_come_before_the_second_call(timed, hand, held, post):
    held.resolve(retry=True, by="ann")
    held.resolve(happened=1, by="bob")
    assert (hand.work(), held.result(1)) == ("EndJob", 1)
    assert (standing(timed), post.sent) == ([("ENDED", "HAPPENED", 1, "bob")], ["mail:ann"])
    assert check_books(timed) == []


def test_a_job_that_is_resumed_asks_no_probe_before_the_call_has_settled(timed, hand, clock):
    asked = []

    def look(key: Key, to: str) -> DidNotHappen:
        asked.append(key)
        return DidNotHappen()

    @timed.effect(key="{to}", probe=look, timeout="2s", settle="1m", retry=Retry(2, first="1ms"))
    async def probed(key: Key, to: str) -> int:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("its worker is lost before")

    @timed.effect(key="{to}", timeout="2s")
    async def bare(key: Key, to: str) -> int:
        raise ConnectionResetError("cut")

    @timed.workflow
    async def write() -> list[int]:
        return await asyncio.gather(probed("ann"), bare("ann"))

    job = write.submit()
    hand.work()
    hand.expire()
    reclaim(timed)
    assert (job.row().hold, [row[0] for row in standing(timed)]) == ("IN_DOUBT", ["IN_DOUBT", "IN_DOUBT"])
    job.resume()
    assert (ask_effects(timed), asked) == (0, [])
    clock.advance(SETTLE_MS)
    assert (ask_effects(timed), asked, check_books(timed)) == (1, ["ann"], [])


def test_a_result_that_the_effect_could_not_return_is_refused(timed, hand, held):
    with pytest.raises(BadValue, match="the result that is given for mail does not fit its annotation int"):
        held.resolve(happened="a letter", by="ann")
    with pytest.raises(BadValue, match="does not fit its annotation int"):
        timed.resolve(key="mail:ann", happened={"n": 1}, by="ann")
    held.resolve(happened=1, by="ann")
    assert (hand.work(), held.result(1), check_books(timed)) == ("EndJob", 1, [])
