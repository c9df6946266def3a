"""What `why` says of a job whose effect is in doubt, or that waits for a key which another job has."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import pytest

from tallystick import Happened, Key, Retry, Unknown
from tallystick.testing.stepping import ask_effects, cancel_overdue, check_books, die, reclaim

CALL_LEASE_MS = 2_000 + 5_000
SETTLE_MS = 60_000
WHEN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
CUT = "OSError: cut"


class Provider:
    """What is outside: what a call does, and what the probe says."""

    def __init__(self) -> None:
        self.then: object = OSError("cut")
        self.found: object = Unknown("the portal is closed")

    def charge(self, key: str) -> str:
        if isinstance(self.then, BaseException):
            raise self.then
        if callable(self.then):
            self.then()
        return f"receipt of {key}"


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def pay(timed, provider):
    """A workflow whose effect has a probe."""

    def look(key: Key, order: int) -> object:
        return provider.found

    @timed.effect(key="charge:{order}", probe=look, timeout="2s", settle="1m", retry=Retry(3, first="1ms"))
    def charge(key: Key, order: int) -> str:
        return provider.charge(key)

    @timed.workflow
    def pay(order: int) -> str:
        return charge(order)

    return pay


@pytest.fixture
def mail(timed, provider):
    """A workflow whose effect has no probe."""

    @timed.effect(key="mail:{name}", timeout="2s")
    def send(key: Key, name: str) -> str:
        return provider.charge(key)

    @timed.workflow
    def mail(name: str) -> str:
        return send(name)

    return mail


def says(job, pattern: str) -> bool:
    found = re.fullmatch(pattern.replace("WHEN", WHEN), job.why())
    assert found, job.why()
    return True


def instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def answers(about: str, *, retry: bool = True) -> tuple[str, ...]:
    """The commands by which a person says what came of an effect."""
    said = ("--happened JSON", "--did-not-happen", "--retry")[: 3 if retry else 2]
    return tuple(f"tally resolve {about} {each}" for each in said)


def asked_without_avail(app, clock) -> None:
    """Let the probe be asked, which cannot tell."""
    clock.advance(SETTLE_MS)
    assert ask_effects(app) == 1


def test_a_job_that_waits_for_its_probe_tells_the_key_the_doubt_and_when_it_is_asked(timed, hand, clock, pay):
    job = pay.submit(7)
    hand.work()
    asked_at = clock.wall_ms() + SETTLE_MS
    assert says(
        job,
        r"it has waited since WHEN for the effect charge; it is unknown whether charge happened under the "
        rf"key 'charge:7' \(0/charge#1\): {CUT}; its probe is asked at WHEN",
    )
    said = job.why()
    assert said.until == instant(asked_at)
    assert said.actions == (*answers(job.id), "tally work APP", f"tally cancel {job.id}")
    clock.advance(SETTLE_MS + 1)
    said = job.why()
    assert "its probe has been due since " in said
    assert "a worker that declares charge asks it" in said
    assert said.until is None


def test_a_probe_that_raised_is_told_with_how_often_it_was_asked(timed, hand, clock, provider, pay):
    provider.found = ValueError("not an answer")
    job = pay.submit(7)
    hand.work()
    clock.advance(SETTLE_MS)
    assert ask_effects(timed) == 1
    assert "; its probe was asked once and is asked again at " in job.why()


def test_a_job_that_was_asked_to_end_in_doubt_is_not_ended_by_a_sweep(timed, hand, clock, pay):
    job = pay.submit(7)
    hand.work()
    asked_at = clock.wall_ms() + SETTLE_MS
    assert job.cancel(by="ann") == "CANCELLING"
    cancel_overdue(timed)
    begins = (
        r"it was asked to end at WHEN, and waits until it is known whether charge happened under the key "
        r"'charge:7' \(0/charge#1\): "
    )
    assert says(job, begins + f"{CUT}; its probe is asked at WHEN")
    said = job.why()
    assert said.until == instant(asked_at)
    forced = f"tally cancel {job.id} --force"
    assert said.actions == (*answers(job.id, retry=False), "tally work APP", forced)
    asked_without_avail(timed, clock)
    assert says(job, begins + "its probe cannot tell: the portal is closed; only a person can say")
    said = job.why()
    assert (said.until, said.actions) == (None, (*answers(job.id, retry=False), forced))
    job.resolve(happened="receipt")
    assert says(job, "it was asked to end at WHEN; no worker runs it, and the next sweep of a worker ends it")
    cancel_overdue(timed)
    assert (job.row().state, check_books(timed)) == ("CANCELLED", [])


def test_a_call_that_may_be_under_way_is_told_whether_the_job_waits_or_is_to_end(timed, hand, clock):
    @timed.effect(key="{order}", timeout="30s")
    def charge(key: Key, order: int) -> str:
        die()

    @timed.workflow
    def slow() -> str:
        return charge(7)

    job = slow.submit()
    assert hand.work() == "died"
    ends_at = clock.wall_ms() + 30_000 + 5_000
    # One worker has the call, and another the job, which finds that.
    assert hand.expire() == 1
    assert hand.work() == "Await"
    unknown = r"whether charge happened under the key '7' \(0/charge#1\): a call may be under way until WHEN"
    assert says(job, f"it has waited since WHEN for the effect charge; it is unknown {unknown}")
    assert (job.why().until, job.why().actions) == (
        instant(ends_at),
        ("tally work APP", f"tally cancel {job.id}"),
    )
    job.cancel()
    assert says(job, f"it was asked to end, and waits until it is known {unknown}")
    assert job.why().until == instant(ends_at)
    clock.advance(30_000 + 5_000)
    assert ("was to end by" in job.why(), job.why().until) == (True, None)


def test_a_running_job_that_is_asked_to_end_in_its_call_is_not_ended_before_that_is_known(
    hand, provider, pay
):
    provider.then = die
    job = pay.submit(7)
    assert hand.work() == "died"
    job.cancel()
    assert says(
        job,
        "it was asked to end and cleans up; it is ended at WHEN if it has not by then, but not before it is "
        "known what came of charge",
    )


def test_when_a_job_was_asked_to_end_is_told_only_if_the_books_say_so(hand, clock, mail):
    named, unnamed = mail.submit("bob"), mail.submit("eve")
    hand.work_all()
    asked_at = clock.wall_ms()
    named.cancel(by="ann")
    unnamed.cancel()
    # What is said later moves the rows, and not the instant.
    for _ in range(2):
        clock.advance(3_600_000)
        named.cancel(by="ben")
        named.send("hello", 1)
        assert named.why().startswith(
            f"it was asked to end at {instant(asked_at):%Y-%m-%d %H:%M:%S}Z, and waits"
        )
        assert named.why().since == instant(asked_at)
        assert unnamed.why().startswith(
            "it was asked to end, and waits until it is known whether send happened"
        )
        assert unnamed.why().since is None


def test_a_job_whose_deadline_passed_in_doubt_says_so_in_whole_words(timed, hand, clock, mail):
    job = mail.opts(deadline="1h").submit("bob")
    hand.work_all()
    clock.advance(3_600_000)
    cancel_overdue(timed)
    deadline = instant(clock.wall_ms())
    clock.advance(60_000)
    assert says(
        job,
        r"it was asked to end because its deadline passed at WHEN, and waits until it is known whether send "
        rf"happened under the key 'mail:bob' \(0/send#1\): {CUT}; only a person can say",
    )
    assert job.why().since == deadline


def test_a_job_that_is_held_in_doubt_offers_its_answers_and_a_resumption_only_with_a_probe(
    timed, hand, clock, pay, mail
):
    asked, unasked = pay.submit(7), mail.submit("bob")
    hand.work_all()
    asked_without_avail(timed, clock)
    assert (asked.row().hold, unasked.row().hold) == ("IN_DOUBT", "IN_DOUBT")
    resumed = f"tally resume {asked.id}"
    assert asked.why().actions == (*answers(asked.id), resumed, f"tally cancel {asked.id}")
    assert asked.why().endswith(
        "; say whether its effect has happened, or resume it to have its probe asked again"
    )
    assert unasked.why().actions == (*answers(unasked.id), f"tally cancel {unasked.id}")
    assert unasked.why().endswith("; say whether its effect has happened")


def test_of_two_effects_in_doubt_the_one_that_was_answered_is_not_asked_for(timed, hand):
    begun: list[str] = []
    both_are = asyncio.Event()

    @timed.effect(key="{name}", timeout="2s")
    async def act(key: Key, name: str) -> str:
        begun.append(name)
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
    assert hand.work() == "died"
    hand.expire()
    reclaim(timed)
    assert job.row().hold == "IN_DOUBT"
    said = job.why()
    assert ("under the key 'a'" in said, "under the key 'b'" in said) == (True, True)
    each = [*answers(f"{job.id} --effect 'act#1'"), *answers(f"{job.id} --effect 'act#2'")]
    assert said.actions == (*each, f"tally cancel {job.id}")
    # The reason of the hold stays what it was.
    key, other = ("a", "b") if "'a'" in job.row().hold_reason else ("b", "a")
    job.resolve(happened="x", key=key)
    said = job.why()
    assert (job.row().hold, f"'{key}'" in job.row().hold_reason) == ("IN_DOUBT", True)
    assert (f"under the key '{key}'" in said, f"under the key '{other}'" in said) == (False, True)
    assert said.actions == (*answers(job.id), f"tally cancel {job.id}")


def test_a_paused_job_in_doubt_tells_of_both(timed, hand, pay):
    job = pay.submit(7)
    hand.work()
    job.pause("lunch")
    said = job.why()
    assert re.match(
        r"it has been held \(PAUSED\) since .*: lunch; resume it; it is unknown whether charge ", said
    )
    assert {*answers(job.id), f"tally resume {job.id}"} < set(said.actions)


def test_a_late_report_is_shown_whatever_the_job_stands_for(timed, hand, clock):
    def later(key: Key, order: int) -> object:
        return Happened("found")

    calls = []

    @timed.effect(key="{order}", probe=later, timeout="2s", settle="1h", retry=Retry(3, first="1ms"))
    def act(key: Key, order: int) -> str:
        calls.append(order)
        if len(calls) == 1:
            # Another worker comes while this one is stopped in its call.
            clock.advance(CALL_LEASE_MS + 30_000)
            hand.expire()
            reclaim(timed)
            assert hand.work() == "Await"
        return "receipt 1"

    @timed.workflow
    def flow() -> str:
        return act(1)

    job = flow.submit()
    assert hand.work() == "lost"
    late = '; a report that came too late at WHEN: EndEffect 0/act#1: HAPPENED "receipt 1"'.replace(
        "WHEN", WHEN
    )
    assert (job.row().hold, re.search(late, job.why()) is not None) == (None, True)
    job.cancel()
    assert (job.row().state, re.search(late, job.why()) is not None) == ("CANCELLING", True)


def test_a_job_that_waits_for_a_key_names_the_job_that_has_it_and_where_its_effect_stands(
    timed, hand, clock, provider, pay
):
    provider.then = die
    owner = pay.submit(7)
    assert hand.work() == "died"
    waiter = pay.submit(7)
    assert hand.work() == "Await"
    begins = (
        f"it has waited since WHEN for the effect charge; job {owner.id} has the key 'charge:7' of charge "
        rf"\({owner.id}:0/charge#1:1\): "
    )
    assert says(waiter, begins + "a call may be under way until WHEN")
    assert waiter.why().actions == (f"tally why {owner.id}", f"tally cancel {waiter.id}")
    hand.expire()
    clock.advance(CALL_LEASE_MS)
    reclaim(timed)
    assert says(waiter, begins + "its worker was lost .*; its probe is asked at WHEN")
    looks = f"tally why {owner.id}"
    asks = (*answers(f"{owner.id} --effect 'charge#1'"), "tally work APP", f"tally cancel {waiter.id}")
    assert waiter.why().actions == (looks, *asks)


def test_a_key_that_a_job_has_kept_that_was_ended_by_force_is_freed_by_the_key(
    timed, hand, clock, provider, pay
):
    owner = pay.submit(7)
    hand.work()
    asked_without_avail(timed, clock)
    owner.cancel(force=True)
    waiter = pay.submit(7)
    hand.work_all()
    assert waiter.why().endswith(
        "the portal is closed; only a person can say; that job has ended, and tally resolve --key charge:7 "
        "answers for it"
    )
    by_key = answers("--key charge:7", retry=False)
    assert waiter.why().actions == (f"tally why {owner.id}", *by_key, f"tally cancel {waiter.id}")
    # The job that has left it open says so too.
    assert says(
        owner, "it was cancelled at WHEN; it is unknown whether charge happened under .*; only a person .*"
    )
    assert owner.why().actions == by_key
    timed.resolve(key="charge:7", did_not_happen=True)
    assert says(owner, "it was cancelled at WHEN")
    provider.then = None
    hand.work_all()
    assert (waiter.result(1), check_books(timed)) == ("receipt of charge:7", [])
