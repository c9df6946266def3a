"""Calls of effects: when one may begin, when it is over, and what is said too late."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import Happened, Key, Retry, wait
from tallystick.core.effects.requests import CallEffect
from tallystick.core.lease import CALL_SLACK_MS
from tallystick.errors import NotResolved
from tallystick.testing.stepping import (
    SteppedWorker,
    ask_effects,
    cancel_overdue,
    check_books,
    die,
    reclaim,
)

TIMEOUT_MS = 2_000


def rows(app, query: str) -> list[tuple]:
    with app.connect() as db:
        return [tuple(row) for row in db.execute(query)]


def beside(act):
    """Do something while a call is under way, as another process would."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(act).result()


def test_a_call_begins_only_if_it_can_end_within_its_lease(timed, hand, clock, monkeypatch):
    leases = []
    committer = timed.runtime().committer
    write = committer.call

    def late(bundle):
        outcome = write(bundle)
        asked = [each for each in bundle if isinstance(each, CallEffect)]
        leases.extend(each.lease.lease_id for each in asked)
        if asked and len(leases) == 1:
            clock.advance(CALL_SLACK_MS + 1)  # the flush has taken so long
        return outcome

    monkeypatch.setattr(committer, "call", late)
    called = []

    @timed.effect(key="{n}", timeout="2s")
    def act(key: Key, n: int) -> int:
        called.extend(row[0] for row in rows(timed, "select lease_id from effect_keys"))
        return n

    @timed.workflow
    def flow() -> int:
        return act(1)

    job = flow.submit()
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", 1, [])
    # The first right was not used: the call was made under the second, and it was the first call.
    assert (len(leases), called) == (2, leases[1:])
    assert rows(timed, "select calls from effect_keys") == [(1,)]


def test_an_async_call_is_over_when_its_time_is(timed, hand):
    @timed.effect(key="{n}", timeout="20ms")
    async def act(key: Key, n: int) -> int:
        await asyncio.sleep(20)
        return n

    @timed.workflow
    async def flow() -> int:
        return await act(1)

    job = flow.submit()
    hand.work()
    assert (job.row().hold, check_books(timed)) == ("IN_DOUBT", [])
    assert "longer than 20 ms" in job.row().hold_reason


class Declined(Exception):
    """What the provider says."""


def test_a_refusal_is_recorded_and_replayed_in_its_job(timed, hand):
    calls = []

    @timed.effect(key="{n}", raises=[Declined], retry=Retry(3))
    def act(key: Key, n: int) -> int:
        calls.append(n)
        raise Declined("no money")

    @timed.workflow
    def flow() -> str:
        try:
            act(1)
        except Declined as declined:
            return f"{declined} {wait('go', str)}"
        return "never"

    job = flow.submit()
    assert hand.work() == "Await"
    job.send("go", "then")
    assert (hand.work(), job.result(1), calls, check_books(timed)) == ("EndJob", "no money then", [1], [])


def test_what_an_earlier_call_says_too_late_is_kept_for_people(timed, hand, clock):
    calls = []
    second = SteppedWorker(timed, clock, owner="second")

    def meanwhile() -> None:
        """Another worker takes the job back, a person wants it called again, and that is cut."""
        second.expire()
        reclaim(timed)
        second.work()
        with pytest.raises(NotResolved, match="no effect of this job is in doubt"):
            job.resolve(happened="x", key="another")
        job.resolve(retry=True, by="ann")
        second.work()

    @timed.effect(key="{n}", timeout="2s", retry=Retry(3))
    def act(key: Key, n: int) -> str:
        calls.append(n)
        if len(calls) == 1:
            beside(meanwhile)
            return "receipt 1"
        raise OSError("cut")

    @timed.workflow
    def flow() -> str:
        return act(1)

    job = flow.submit()
    assert hand.work() == "lost"
    assert (calls, job.row().hold, check_books(timed)) == ([1, 1], "IN_DOUBT", [])
    said = 'EndEffect 0/act#1: HAPPENED "receipt 1"'
    assert rows(timed, "select report from stale_reports")[-1:] == [(said,)]
    assert said in job.why()
    # It is no answer by itself: a person gives that.
    assert rows(timed, "select outcome from effect_keys") == [(None,)]
    job.resolve(happened="receipt 1", by="ann")
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", "receipt 1", [])


def test_two_effects_of_a_job_in_doubt_are_answered_one_by_one(timed, hand, clock):
    begun: list[str] = []
    both_are = asyncio.Event()

    @timed.effect(key="{what}", timeout="2s")
    async def act(key: Key, what: str) -> str:
        begun.append(what)
        if len(begun) == 2:
            both_are.set()
        await both_are.wait()
        die()

    @timed.workflow
    async def both() -> list[str]:
        nonlocal both_are
        both_are = asyncio.Event()
        return list(await asyncio.gather(act("a"), act("b")))

    job = both.submit()
    assert (hand.work(), sorted(begun)) == ("died", ["a", "b"])
    hand.expire()
    reclaim(timed)
    assert rows(timed, "select key, phase from effect_keys order by key") == [
        ("a", "IN_DOUBT"),
        ("b", "IN_DOUBT"),
    ]
    assert (job.row().hold, check_books(timed)) == ("IN_DOUBT", [])
    with pytest.raises(NotResolved, match="several effects of this job are in doubt: say which one"):
        job.resolve(happened="x")
    job.resolve(happened="1", key="a")
    assert (job.row().hold, hand.work(), check_books(timed)) == ("IN_DOUBT", "idle", [])
    job.resolve(happened="2", effect="act#2")
    assert (job.row().hold, hand.work(), job.result(1)) == (None, "EndJob", ["1", "2"])
    answers = rows(
        timed, "select key, ended_by is not null, ended_at is not null from effect_keys order by key"
    )
    assert [(key, bool(by), bool(at)) for key, by, at in answers] == [("a", True, True), ("b", True, True)]
    assert check_books(timed) == []


def test_a_deadline_lets_a_job_end_when_it_is_known_what_came_of_its_effect(timed, hand, clock):
    def look(key: Key, n: int) -> Happened[int]:
        return Happened(n)

    @timed.effect(key="{n}", timeout="2s", settle="1m", probe=look)
    def act(key: Key, n: int) -> int:
        die()

    @timed.workflow
    def flow() -> int:
        return act(1)

    job = flow.opts(deadline="10s").submit()
    assert hand.work() == "died"
    hand.expire()
    reclaim(timed)
    cancel_overdue(timed)
    assert (job.row().state, job.row().error_code, check_books(timed)) == ("CANCELLING", "DEADLINE", [])
    clock.advance(60_000)
    cancel_overdue(timed)
    assert job.row().state == "CANCELLING"
    assert ask_effects(timed) == 1
    cancel_overdue(timed)
    assert (job.row().state, job.row().error_code, check_books(timed)) == ("CANCELLED", "DEADLINE", [])
    assert rows(timed, "select outcome, ended_by from effect_keys") == [("HAPPENED", "probe")]
