"""Jobs that come to a key which another attempt has: they wait, and the end of that attempt tells them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import DidNotHappen, Happened, Job, Key, NotDone, Retry, StepFailed, aio
from tallystick.errors import NotResolved
from tallystick.testing.stepping import SteppedWorker, ask_effects, check_books, die, reclaim

TIMEOUT_MS = 2_000
SETTLE_MS = 1_000


class Declined(Exception):
    """What the provider says."""


class Provider:
    """What is outside: what it does next is a list."""

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.next: list[object] = []
        self.found: object = Happened("found")

    def charge(self, key: str) -> str:
        then = self.next.pop(0) if self.next else None
        if isinstance(then, BaseException):
            raise then
        self.acted.append(key)
        if callable(then):
            then()
        return f"receipt {len(self.acted)}"


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def shop(timed, provider):
    """A workflow that charges once."""

    def find(key: Key, order: int, amount: int) -> object:
        return provider.found

    @timed.effect(
        key="{order}", timeout="2s", settle="1s", probe=find, raises=[Declined], retry=Retry(2, first="1m")
    )
    def charge(key: Key, order: int, amount: int) -> str:
        return provider.charge(key)

    @timed.workflow
    def order(number: int = 7, amount: int = 5) -> str:
        try:
            return charge(number, amount)
        except Declined:
            return "declined"
        except StepFailed as failed:
            return failed.error_code

    return order


def attempts(app) -> list[tuple]:
    """Every attempt at an effect: of which job, by its number of submission, the how manieth, and its end."""
    query = """select a.job_id, a.attempt, a.status, a.reason
                 from attempts a join jobs j on j.job_id = a.job_id
                where a.unit <> '' order by j.created_at, a.job_id, a.attempt"""
    with app.connect() as db:
        rows = [tuple(row) for row in db.execute(query)]
    jobs = list(dict.fromkeys(row[0] for row in rows))
    return [(jobs.index(job_id), *about) for job_id, *about in rows]


def messages(app) -> list[str]:
    with app.connect() as db:
        return [row[0] for row in db.execute("select guid from messages where kind = 'result' order by guid")]


LOST = (1, "ABORTED", "DUPLICATE_COMMIT")


@pytest.fixture
def lost(timed, hand, shop, provider, clock):
    """A job whose worker died in the call, and two others that have come to its key."""
    provider.next = [die]
    jobs = [shop.submit()]
    assert hand.work() == "died"
    clock.advance(1)
    jobs.append(shop.submit())
    assert hand.work() == "Await"
    clock.advance(1)
    jobs.append(shop.submit())
    assert hand.work() == "Await"
    assert attempts(timed) == [(0, 1, "COMMITTED", None), (1, *LOST), (2, *LOST)]
    assert (hand.work(), check_books(timed)) == ("idle", [])
    return jobs


def doubted(app, hand, clock) -> None:
    """Let the leases of the first job and of its call run out, and its time to settle."""
    hand.expire()
    reclaim(app)
    clock.advance(SETTLE_MS)


def test_the_bundle_that_ends_the_owner_delivers_to_everybody_who_waits(timed, hand, clock, lost, provider):
    doubted(timed, hand, clock)
    assert messages(timed) == []
    assert ask_effects(timed) == 1
    # No clock has moved since, and nobody has looked: each has its answer, and is due.
    answers = [f"effect:{job.id}:0/charge#1:1" for job in lost[1:]]
    assert messages(timed) == sorted([f"{lost[0].id}:0/charge#1:1", *answers])
    assert [job.row().ready_at is not None for job in lost] == [True] * 3
    assert (hand.work_all(), check_books(timed)) == (None, [])
    assert [job.result(1) for job in lost] == ["found"] * 3
    assert provider.acted == ["7"]
    assert attempts(timed) == [(0, 1, "DONE", None), (1, *LOST), (2, *LOST)]


def comes(timed, hand, shop) -> Job[str]:
    """Let another job come to the key, in a worker of its own beside the call."""

    def come() -> Job[str]:
        job: Job[str] = shop.submit()
        assert SteppedWorker(timed, hand.clock, owner="second").work() == "Await"
        assert job.row().ready_at is None
        return job

    hand.clock.advance(1)
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(come).result()


def test_a_call_that_returns_delivers_too(timed, hand, shop, provider):
    others = []
    provider.next = [lambda: others.append(comes(timed, hand, shop))]
    job = shop.submit()
    assert (hand.work(), hand.work(), hand.work()) == ("EndJob", "EndJob", "idle")
    assert (job.result(1), others[0].result(1), provider.acted) == ("receipt 1", "receipt 1", ["7"])
    assert check_books(timed) == []


@pytest.mark.parametrize("ending", ["refused", "not done"])
def test_an_owner_that_frees_its_key_wakes_them_and_one_takes_it(timed, hand, shop, provider, ending):
    others = []

    def meanwhile() -> None:
        others.extend(comes(timed, hand, shop) for _one in range(2))
        if ending == "refused":
            raise Declined
        raise NotDone

    provider.next = [meanwhile, None] if ending == "refused" else [NotDone(), meanwhile, None]
    job = shop.submit()
    if ending == "not done":
        assert (hand.work(), others) == ("EndAttempt", [])
        hand.clock.advance(60_000)
    assert hand.work() == "EndJob"
    assert [other.row().ready_at is not None for other in others] == [True, True]
    hand.work_all()
    acted = len(provider.acted)
    assert job.result(1) == ("declined" if ending == "refused" else "NOT_DONE")
    assert [other.result(1) for other in others] == [f"receipt {acted}"] * 2
    # The first to come has the key by its second attempt; the other one has found it happened.
    assert attempts(timed)[1:] == [(1, *LOST), (1, 2, "DONE", None), (2, *LOST), (2, 2, *LOST[1:])]
    assert check_books(timed) == []


def test_what_never_happened_ends_with_a_cancelled_owner_and_wakes_them(timed, hand, clock, shop, provider):
    provider.next = [NotDone()]
    first, second = shop.submit(), shop.submit()
    assert (hand.work(), hand.work()) == ("EndAttempt", "Await")
    assert first.cancel() == "CANCELLED"
    assert (hand.work(), second.result(1), check_books(timed)) == ("EndJob", "receipt 1", [])
    assert attempts(timed)[1:] == [(1, *LOST), (1, 2, "DONE", None)]


def test_a_probe_that_says_no_leaves_the_key_with_its_owner(timed, hand, clock, lost, provider):
    provider.found = DidNotHappen()
    doubted(timed, hand, clock)
    assert ask_effects(timed) == 1
    assert [job.row().ready_at is not None for job in lost] == [True, False, False]
    hand.work_all()
    assert [job.result(1) for job in lost] == ["receipt 2"] * 3
    assert check_books(timed) == []


def test_one_that_waits_can_be_cancelled_and_hears_nothing(timed, hand, clock, lost):
    assert lost[1].cancel() == "CANCELLED"
    assert check_books(timed) == []
    doubted(timed, hand, clock)
    ask_effects(timed)
    hand.work_all()
    assert (lost[2].result(1), len(messages(timed)), check_books(timed)) == ("found", 2, [])


def test_one_that_waits_answers_for_nobody(timed, lost):
    with pytest.raises(NotResolved, match="no effect of this job is in doubt"):
        lost[1].resolve(happened="x")
    assert "it has waited since" in lost[1].why()


def test_one_that_waits_and_runs_for_another_reason_loses_once(timed, hand, clock, provider):
    @timed.effect(key="{order}", timeout="2s")
    async def charge(key: Key, order: int) -> str:
        return provider.charge(key)

    @timed.workflow
    async def once() -> str:
        return await charge(7)

    @timed.workflow
    async def both() -> list[str]:
        async def paid() -> str:
            await aio.wait("pay", bool)
            return await charge(7)

        return list(await asyncio.gather(paid(), aio.wait("go", str)))

    provider.next = [die]
    first, second = once.submit(), both.submit()
    assert (hand.work(), hand.work()) == ("died", "Await")
    second.send("pay", True)
    assert (hand.work(), hand.work()) == ("Await", "idle")
    # It is woken by another wait, and comes to the key again.
    second.send("go", "went")
    assert (hand.work(), hand.work()) == ("Await", "idle")
    assert (attempts(timed), check_books(timed)) == ([(0, 1, "COMMITTED", None), (1, *LOST)], [])
    hand.expire()
    reclaim(timed)
    first.resolve(happened="receipt 1")
    hand.work_all()
    assert (first.result(1), second.result(1)) == ("receipt 1", ["receipt 1", "went"])
    assert check_books(timed) == []


def test_a_fork_waits_as_another_job_does(timed, hand, clock, lost):
    fork = lost[0].fork(at="charge")
    assert (hand.work(), hand.work()) == ("Await", "idle")
    doubted(timed, hand, clock)
    ask_effects(timed)
    hand.work_all()
    assert (fork.result(1), check_books(timed)) == ("found", [])


def test_other_arguments_are_a_conflict_while_it_is_in_doubt_too(timed, hand, lost, shop):
    other = shop.submit(7, 6)
    assert (hand.work(), other.result(1), check_books(timed)) == ("EndJob", "EFFECT_CONFLICT", [])
