"""The fifteen digits in the tables of real jobs, after every commit, on every store."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tallystick import Retry, StepFailed, again, aio, gather, sleep, wait
from tallystick.testing.stepping import Death, SteppedWorker, die
from tests.app import digits_by_hand as expected
from tests.cut_spawn import behind_each_bundle, cut_spawn, small_spawns

ROOT = Path(__file__).parents[3]


class Ledgers:
    """What the tables say of one job, as fifteen digits."""

    def __init__(self, app, job) -> None:
        self._app, self._job = app, job

    def _rows(self, query: str) -> list[tuple]:
        with self._app.connect() as db:
            return db.execute(query)

    def job(self, job_id: str | None = None) -> tuple[str, str]:
        query = f"select root_ledger, start_ledger from jobs where job_id = '{job_id or self._job.id}'"
        ((root, start),) = self._rows(query)
        return f"{root:015d}", f"{start:015d}"

    def activities(self) -> dict[str, str]:
        query = f"select name, occurrence, ledger from steps where job_id = '{self._job.id}' order by 1, 2"
        return {f"{name}#{occurrence}": f"{ledger:015d}" for name, occurrence, ledger in self._rows(query)}

    def messages(self, kind: str = "signal") -> list[str]:
        own = f"where job_id = '{self._job.id}' and kind = '{kind}'"
        query = f"select ledger from messages {own} order by ledger % 100000000"
        return [f"{ledger:015d}" for (ledger,) in self._rows(query)]


def test_a_job_and_its_start(timed, clock):
    @timed.workflow
    def plain() -> None: ...

    @timed.workflow
    def broken() -> None:
        raise ValueError("no")

    for workflow, table in ((plain, expected.PLAIN), (broken, expected.FAILED)):
        hand = SteppedWorker(timed, clock)
        job = workflow.submit()
        ledgers = Ledgers(timed, job)
        seen = [("submitted", *ledgers.job())]
        segment = hand.claim()
        seen.append(("claimed", *ledgers.job()))
        hand.run(segment)
        assert [*seen, (table[-1][0], *ledgers.job())] == table


def test_a_job_that_is_taken_over(timed, clock, hand):
    @timed.workflow
    def plain() -> None: ...

    job = plain.submit()
    ledgers = Ledgers(timed, job)
    seen = [("submitted", *ledgers.job())]
    hand.claim()
    seen.append(("claimed", *ledgers.job()))
    hand.expire()
    seen.append(("lost", *ledgers.job()))
    segment = hand.claim()
    seen.append(("claimed again", *ledgers.job()))
    hand.run(segment)
    assert [*seen, ("returned", *ledgers.job())] == expected.TAKEN_OVER


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_an_inline_step_at_its_nth_try_and_a_tx(timed, hand, tries):
    made = []

    @timed.step(retry=Retry(3, first="1ms"))
    def work() -> int:
        made.append(1)
        if len(made) < tries:
            raise ValueError("not yet")
        return 1

    @timed.step(retry=Retry(3, first="1ms"))
    def never() -> int:
        raise ValueError("never")

    @timed.tx
    def book(db) -> int:
        return 1

    @timed.workflow
    def flow() -> None:
        work()
        book()
        try:
            never()
        except StepFailed:
            return

    job = flow.submit()
    hand.work_all()
    job.result(5)
    digits = {"work#1": expected.STEP[tries], "book#1": expected.STEP[1], "never#1": expected.STEP[3]}
    assert Ledgers(timed, job).activities() == digits


@pytest.mark.parametrize("then", ["returns", "waits"])
def test_a_wait_through_every_commit(timed, hand, then):
    @timed.step
    def work() -> int:
        Death.latest = None
        seen.append(("answered", *ledgers.job(), ledgers.activities()["go#1"], ledgers.messages()[0]))
        return 1

    @timed.workflow
    def flow() -> None:
        wait("go", bool)
        work()
        if then == "waits":
            wait("more", bool)

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    seen: list[tuple] = []

    def look(what: str) -> None:
        seen.append(
            (what, *ledgers.job(), ledgers.activities()["go#1"], next(iter(ledgers.messages()), None))
        )

    hand.work()
    look("suspended")
    job.send("go", True)
    look("delivered")
    segment = hand.claim()
    look("claimed")
    hand.run(segment)
    look("returned" if then == "returns" else "suspended again")
    assert seen == (expected.WAIT if then == "returns" else expected.WAIT_AND_WAIT)


def test_a_takeover_after_the_answer_moves_no_digit(timed, hand):
    alive = []

    @timed.step
    def work() -> int:
        if not alive:
            raise Death
        return 1

    @timed.workflow
    def flow() -> None:
        wait("go", bool)
        work()

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    hand.work()
    job.send("go", True)
    assert hand.work() == "died"
    answered = expected.WAIT[3]
    for _ in range(2):
        assert (*ledgers.job(), ledgers.activities()["go#1"], ledgers.messages()[0]) == answered[1:]
        hand.expire()
    alive.append(1)
    hand.work_all()
    assert (*ledgers.job(), ledgers.activities()["go#1"], ledgers.messages()[0]) == expected.WAIT[4][1:]


def test_the_walk_of_the_page_is_that_of_a_real_job(timed, hand):
    lives: list[int] = []

    @timed.step
    def work() -> int:
        look()
        lives.append(1)
        if len(lives) == 1:
            raise Death
        return 1

    @timed.workflow
    def flow() -> None:
        wait("go", bool)
        work()

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    seen: list[tuple[str, str]] = []

    def look() -> None:
        seen.append((ledgers.activities()["go#1"], next(iter(ledgers.messages()), "")))

    hand.work()
    look()
    job.send("go", True)
    look()
    hand.claim()
    look()
    hand.expire()
    segment = hand.claim()
    look()
    assert hand.run(segment) == "died"
    hand.expire()
    hand.work_all()
    look()
    assert seen == expected.WALK


def test_the_page_of_the_digits_says_what_was_written_by_hand():
    page = (ROOT / "docs" / "ledger.md").read_text("utf-8")
    walk, promises = page.split("## What happens next")[0], page.split("## What each")[1]
    assert [_digits(line) for line in _rows(walk)] == expected.WALK
    listed: dict[str, list[tuple[str, str]]] = {}
    for line in _rows(promises):
        name = line.split("|")[1].strip().strip("`")
        listed.setdefault(name or list(listed)[-1], []).append(_digits(line))
    assert listed == expected.PROMISES


def _rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if re.search(r"`\d{15}`", line)]


def _digits(line: str) -> tuple[str, str]:
    """Return what the last two columns of digits say; an empty cell is no ledger."""
    activity, message = re.findall(r"\| (?:`(\d{15})`| {17}) (?=\|)", line)
    return activity, message


def test_a_signal_that_was_there_first_and_a_timer_that_lost(timed, hand, clock):
    @timed.workflow
    def flow() -> None:
        wait("early", bool)
        wait("go", bool, timeout="1h")

    job = flow.submit()
    job.send("early", True)
    ledgers = Ledgers(timed, job)
    hand.work()
    assert (ledgers.activities()["early#1"], ledgers.messages()[0]) == expected.EARLY_SIGNAL
    job.send("go", True)
    hand.work()
    assert ledgers.messages("timer") == [expected.LOSER]


@pytest.mark.parametrize("kind", ["sleep", "timeout"])
def test_a_timer_drives_as_a_signal_does(timed, hand, clock, kind):
    @timed.workflow
    def flow() -> None:
        if kind == "sleep":
            sleep("1h")
        else:
            wait("go", bool, timeout="1h")

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    hand.work()
    clock.advance(3_600_000)
    segment = hand.claim()
    name = "sleep#1" if kind == "sleep" else "go#1"
    assert (ledgers.activities()[name], *ledgers.messages("timer")) == expected.WAIT[2][3:]
    hand.run(segment)
    assert (ledgers.activities()[name], *ledgers.messages("timer")) == expected.WAIT[4][3:]


def test_two_waits_at_once_and_one_that_is_met_again(timed, hand):
    @timed.workflow
    async def flow() -> None:
        await asyncio.gather(aio.wait("a", bool), aio.wait("b", bool))

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    hand.work()
    assert ledgers.activities() == {"a#1": "001100000000000", "b#1": "001100000000000"}
    job.send("a", True)
    hand.work()
    assert ledgers.activities() == {"a#1": expected.WAIT_AND_WAIT[-1][3], "b#1": expected.MET_AGAIN}
    job.send("b", True)
    hand.work()
    assert ledgers.activities() == {"a#1": expected.WAIT_AND_WAIT[-1][3], "b#1": "002111100000001"}
    job.result(5)


@pytest.fixture
def child(timed):
    @timed.workflow
    def child(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    return child


def test_a_group_of_three(timed, hand, child):
    @timed.workflow
    def flow() -> None:
        gather(*(child.child(n) for n in range(3)))

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    for what, group, words in expected.GROUP_OF_3:
        hand.work()
        assert (ledgers.activities()["gather#1"], ledgers.messages("child")) == (group, words), what
    segment = hand.claim()
    driven = expected.PROMISES["gather"][-1]
    assert (ledgers.activities()["gather#1"], *ledgers.messages("resume")) == driven
    hand.run(segment)
    assert (ledgers.activities()["gather#1"], *ledgers.messages("resume")) == expected.JOINED


def test_enough_and_the_first_failure(timed, hand, child):
    @timed.workflow
    def enough() -> None:
        gather(*(child.child(n) for n in range(2)), enough=1)

    @timed.workflow
    def first() -> None:
        gather(child.child(-1), child.child(2), fail_fast=True)

    job = enough.submit()
    hand.work()
    one, two = hand.claim_many(2)
    hand.run(one)
    hand.run(two)
    ledgers = Ledgers(timed, job)
    assert ledgers.activities()["gather#1"] == "001111100000001"
    assert ledgers.messages("child") == [expected.TOO_LATE, "000111100000001"]
    hand.work_all()
    other = first.submit()
    hand.work()
    segments = sorted(hand.claim_many(2), key=lambda segment: segment.job_id)
    hand.run(segments[0])
    ledgers = Ledgers(timed, other)
    assert (ledgers.activities()["gather#1"], ledgers.messages("child")) == (
        "001111000000001",
        ["000011000000001"],
    )
    assert ledgers.messages("resume") == ["000000000000000"]
    hand.run(segments[1])
    assert (ledgers.activities()["gather#1"], ledgers.messages("child")[1]) == (
        "001111100000002",
        "000111100000002",
    )


def test_a_spawn_that_is_cut_short_while_its_first_children_end(timed, hand, child, monkeypatch):
    """The parent dies after its first bundle; all of that bundle's children end before it is taken over."""
    small_spawns(monkeypatch.setattr, 5)
    cut_spawn(monkeypatch.setattr, die)

    @timed.workflow
    def flow() -> int:
        return sum(gather(*(child.child(n) for n in range(12))))

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    seen = []
    assert hand.work() == "died"
    seen.append(("first bundle", ledgers.activities()["gather#1"]))
    for _ in range(5):
        assert hand.work() == "EndJob"
    assert ledgers.activities()["gather#1"] == seen[0][1]
    assert ledgers.messages("child") == ["000000000000000"] * 5
    hand.expire()
    looks = []
    behind_each_bundle(monkeypatch.setattr, lambda: looks.append(ledgers.activities()["gather#1"]))
    hand.work()
    assert looks == [expected.SPAWN_CUT[1][1]] * 2
    assert ledgers.activities()["gather#1"] == "002111000000005"
    assert ledgers.messages("child") == [f"00001100000000{k}" for k in range(1, 6)]
    hand.work_all()
    assert job.result(5) == sum(range(12))
    assert ledgers.activities()["gather#1"] == "002111100000013"


def test_five_turns(timed, hand):
    @timed.workflow
    def loop(n: int) -> int:
        return again(n + 1) if n < 5 else n

    job = loop.submit(0)
    ledgers = Ledgers(timed, job)
    hand.work()
    roots = []
    segment = hand.claim()
    assert (ledgers.job()[0], *ledgers.messages("resume")) == expected.PROMISES["again"][0]
    hand.run(segment)
    roots.append(ledgers.job()[0])
    for _ in range(4):
        hand.work()
        roots.append(ledgers.job()[0])
    assert job.result(5) == 5
    assert (roots, ledgers.messages("resume")) == (expected.TURNS, expected.TURN_WORDS)


def test_a_cancellation_of_a_job_that_nobody_runs(timed, hand):
    @timed.workflow
    def flow() -> None:
        wait("go", bool)

    job = flow.submit()
    job.cancel()
    ledgers = Ledgers(timed, job)
    assert (*ledgers.job(), *ledgers.messages("resume")) == expected.CANCELLED_QUEUED
    job = flow.submit()
    hand.work()
    job.cancel()
    ledgers = Ledgers(timed, job)
    assert (
        *ledgers.job(),
        *ledgers.messages("resume"),
        ledgers.activities()["go#1"],
    ) == expected.CANCELLED_WAITING


def test_a_fork_begins_anew_with_the_digits_of_its_copies(timed, hand):
    @timed.step(retry=Retry(2, first="1ms"))
    def work() -> int:
        made.append(1)
        if len(made) == 1:
            raise ValueError("not yet")
        return 1

    @timed.step
    def more() -> int:
        return 2

    @timed.workflow
    def flow() -> int:
        return work() + more()

    made: list[int] = []
    job = flow.submit()
    hand.work_all()
    fork = job.fork(at="more")
    ledgers = Ledgers(timed, fork)
    assert ledgers.job() == expected.FORKED
    assert ledgers.activities() == {"work#1": expected.STEP[2]}
