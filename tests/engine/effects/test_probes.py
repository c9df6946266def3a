"""Probes: what came of an effect in doubt is found out, not guessed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tallystick import DidNotHappen, Happened, Key, Retry, StepFailed, Unknown
from tallystick.core.effects.requests import Says, Settled, SettleEffect, TakeProbe
from tallystick.testing.stepping import (
    ask_effects,
    cancel_overdue,
    check_books,
    die,
    reclaim,
)

SETTLE_MS = 60_000
CALL_LEASE_MS = 2_000 + 5_000


class Bank:
    """What is outside, and what it says when it is asked."""

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.asked: list[tuple[str, int]] = []
        self.answers: list[object] = []
        self.dies = True

    def charge(self, key: str) -> str:
        self.acted.append(key)
        if self.dies:
            die()
        return f"receipt {len(self.acted)}"

    def look(self, key: str, amount: int) -> object:
        self.asked.append((key, amount))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def bank():
    return Bank()


@pytest.fixture(params=["sync", "async"])
def pay(request, timed, bank):
    """A workflow whose effect has a probe, in both colours."""

    def look(key: Key, order: int, amount: int) -> object:
        return bank.look(key, amount)

    async def look_async(key: Key, order: int, amount: int) -> object:
        await asyncio.sleep(0)
        return bank.look(key, amount)

    probe = look if request.param == "sync" else look_async

    @timed.effect(key="{order}", probe=probe, timeout="2s", settle="1m", retry=Retry(2, first="1ms"))
    def charge(key: Key, order: int, amount: int) -> str:
        return bank.charge(key)

    @timed.workflow
    def buy(order: int) -> str:
        try:
            return charge(order, 5)
        except StepFailed as failed:
            return f"{failed.error_code} after {failed.tries}"

    return buy


@pytest.fixture
def lost(timed, hand, clock, pay):
    """A job whose worker died in the call, and which the sweep has seen."""
    job = pay.submit(7)
    assert hand.work() == "died"
    hand.expire()
    assert reclaim(timed) == 1
    assert (job.row().hold, check_books(timed)) == (None, [])
    return job


def settled(clock) -> None:
    clock.advance(SETTLE_MS)


def phase(app) -> tuple:
    with app.connect() as db:
        ((*about,),) = db.execute("select phase, outcome, calls, probes, ended_by from effect_keys")
    return tuple(about)


def test_it_has_happened(timed, hand, clock, lost, bank):
    bank.answers = [Happened("receipt 1")]
    # The call may act for as long as it takes to settle.
    clock.advance(SETTLE_MS - 1)
    assert (ask_effects(timed), bank.asked) == (0, [])
    # Whoever comes to it meanwhile waits.
    assert (hand.work(), hand.work(), check_books(timed)) == ("Await", "idle", [])
    clock.advance(1)
    assert (ask_effects(timed), bank.asked, check_books(timed)) == (1, [("7", 5)], [])
    assert (hand.work(), lost.result(1)) == ("EndJob", "receipt 1")
    assert (bank.acted, phase(timed)) == (["7"], ("ENDED", "HAPPENED", 1, 1, "probe"))
    (fact,) = [msgspec.json.decode(fact.payload) for fact in lost.history() if fact.name == "resolve"]
    assert (fact["by"], check_books(timed)) == ("probe", [])


def test_it_did_not_happen_and_is_called_again_under_the_same_key(timed, hand, clock, lost, bank):
    bank.answers, bank.dies = [DidNotHappen()], False
    settled(clock)
    assert (ask_effects(timed), phase(timed)[0], check_books(timed)) == (1, "RESTING", [])
    assert (hand.work(), lost.result(1)) == ("EndJob", "receipt 2")
    assert (bank.acted, phase(timed), check_books(timed)) == (
        ["7", "7"],
        ("ENDED", "HAPPENED", 2, 0, "call"),
        [],
    )


def test_it_did_not_happen_and_no_tries_are_left(timed, hand, clock, lost, bank):
    bank.answers = [DidNotHappen(), DidNotHappen()]
    settled(clock)
    ask_effects(timed)
    assert hand.work() == "died"
    hand.expire()
    reclaim(timed)
    settled(clock)
    assert ask_effects(timed) == 1
    hand.work_all()
    assert (lost.result(1), phase(timed)[:3], check_books(timed)) == (
        "NOT_DONE after 2",
        ("ENDED", "NOT_DONE", 2),
        [],
    )


def test_it_cannot_tell_and_a_person_is_asked(timed, hand, clock, lost, bank):
    bank.answers = [Unknown("the bank is closed"), Happened("receipt 1")]
    settled(clock)
    assert ask_effects(timed) == 1
    assert (lost.row().hold, hand.work(), check_books(timed)) == ("IN_DOUBT", "idle", [])
    assert "the bank is closed" in lost.row().hold_reason
    clock.advance(10 * SETTLE_MS)
    assert ask_effects(timed) == 0
    # A resumption asks the probe again, and nothing else.
    lost.resume()
    assert (ask_effects(timed), lost.row().hold, check_books(timed)) == (1, None, [])
    hand.work_all()
    assert (lost.result(1), bank.acted, check_books(timed)) == ("receipt 1", ["7"], [])


def test_a_probe_that_raises_is_no_answer(timed, hand, clock, lost, bank):
    bank.answers = [OSError("no line")] * 6
    settled(clock)
    for _turn in range(5):
        assert ask_effects(timed) == 1
        assert (lost.row().hold, check_books(timed)) == (None, [])
        clock.advance(60_000)
    assert ask_effects(timed) == 1
    assert (lost.row().hold, len(bank.asked), check_books(timed)) == ("IN_DOUBT", 6, [])
    assert "OSError: no line" in lost.row().hold_reason
    lost.resolve(happened="receipt 1")
    hand.work_all()
    assert (lost.result(1), bank.acted) == ("receipt 1", ["7"])


def test_an_answer_of_another_kind_is_no_answer(timed, clock, lost, bank):
    bank.answers = [True]
    settled(clock)
    assert (ask_effects(timed), phase(timed)[:2], check_books(timed)) == (1, ("IN_DOUBT", None), [])


def test_a_worker_that_dies_in_the_probe_leaves_it_to_the_next(timed, hand, clock, lost, bank):
    settled(clock)
    store = timed.runtime().store
    (due,) = store.due_probes(["charge"], 10)
    taken = timed.runtime().committer.call((TakeProbe(due.job_id, due.unit, due.rev, CALL_LEASE_MS),))
    assert (taken.arguments, check_books(timed)) == ('{"order":7,"amount":5}', [])
    # The right to ask is that of one worker, for a while; a second one is not given it.
    assert timed.runtime().committer.call((TakeProbe(due.job_id, due.unit, due.rev, CALL_LEASE_MS),)) is None
    bank.answers = [Happened("receipt 1")]
    assert ask_effects(timed) == 0
    clock.advance(CALL_LEASE_MS)
    assert ask_effects(timed) == 1
    # What the first one says too late changes nothing.
    late = SettleEffect(due.job_id, Says.DID_NOT_HAPPEN, "probe", due.unit, rev=taken.rev)
    assert timed.runtime().committer.call((late,)) is Settled.NOT_IN_DOUBT
    hand.work_all()
    assert (lost.result(1), bank.acted, check_books(timed)) == ("receipt 1", ["7"], [])


def test_a_cancelled_job_ends_when_the_probe_has_answered(timed, hand, clock, lost, bank):
    bank.answers = [Happened("receipt 1")]
    hand.work()
    assert lost.cancel() == "CANCELLING"
    clock.advance(1_000)
    cancel_overdue(timed)
    assert (lost.row().state, check_books(timed)) == ("CANCELLING", [])
    settled(clock)
    assert ask_effects(timed) == 1
    cancel_overdue(timed)
    assert (lost.row().state, phase(timed)[:2], check_books(timed)) == (
        "CANCELLED",
        ("ENDED", "HAPPENED"),
        [],
    )


def test_two_workers_do_not_ask_at_once(timed, clock, lost, bank):
    bank.answers = [Happened("receipt 1")]
    settled(clock)
    inner = []
    looked = bank.look

    def look(key: str, amount: int) -> object:
        inner.append(ask_effects(timed))
        return looked(key, amount)

    bank.look = look
    assert (ask_effects(timed), inner, len(bank.asked)) == (1, [0], 1)


def test_a_worker_asks_by_itself(app, bank):
    bank.dies = False
    bank.answers = [Happened("receipt 1")]

    def look(key: Key, order: int) -> object:
        return bank.look(key, order)

    @app.effect(key="{order}", probe=look, timeout="2s", settle="10ms")
    def charge(key: Key, order: int) -> str:
        bank.charge(key)
        raise OSError("cut")

    @app.workflow
    def buy(order: int) -> str:
        return charge(order)

    job = buy.submit(7)
    with app.worker():
        assert job.result(20) == "receipt 1"
    assert (bank.acted, bank.asked, check_books(app)) == (["7"], [("7", 7)], [])
