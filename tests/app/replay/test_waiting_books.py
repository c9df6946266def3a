"""The books of jobs that wait can be checked again, and replay gives what the first run gave."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Delivered, Retry, again, aio, gather, sleep, uuid, wait
from tallystick.errors import ChildrenFailed, TallyError
from tallystick.testing.stepping import Death, check_books
from tests.cut_spawn import small_spawns


def test_the_chain_of_a_job_that_waited_and_joined_can_be_computed_again(timed, hand, clock):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> int:
        wait("go", bool, timeout="1h")
        sleep("1m")
        return sum(gather(child.child(1), child.child(2)))

    job = parent.submit()
    hand.work()
    clock.advance(1_000)
    job.send("go", True)
    hand.work()
    clock.advance(60_000)
    hand.work_all()
    assert job.result(5) == 3
    assert check_books(timed) == []


def test_the_word_that_one_group_is_closed_is_no_entry_of_another_that_is_open(timed, hand, clock):
    @timed.workflow
    async def slow() -> str:
        await aio.sleep("1m")
        return "slow"

    @timed.workflow
    def fast() -> str:
        return "fast"

    @timed.workflow
    async def parent() -> list[str]:
        groups = await asyncio.gather(aio.gather(slow.child()), aio.gather(fast.child()))
        return [word for group in groups for word in group]

    job = parent.submit()
    hand.work_all()
    clock.advance(60_000)
    hand.work_all()
    assert job.result(5) == ["slow", "fast"]
    with timed.transaction() as db:
        rows = db.execute(f"select ledger from steps where job_id = '{job.id}' order by occurrence")
    assert rows == [(1_111_100_000_002,), (1_111_100_000_002,)]


@pytest.mark.parametrize("name", ["again", "gather", "sleep"])
def test_a_signal_may_be_named_like_something_of_ours(timed, hand, clock, name):
    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def flow(turn: int) -> str:
        gather(child.child())
        sleep("1m")
        return again(turn + 1) if turn < 2 else wait(name, str)

    job = flow.submit(1)
    hand.work()
    assert job.send(name, "word") is Delivered.KEPT
    for _ in range(3):
        hand.work_all()
        clock.advance(60_000)
    assert job.result(5) == "word"
    assert check_books(timed) == []
    with timed.transaction() as db:
        assert db.execute("select distinct semaphore from jobs") == [(0,)]
        assert db.execute(
            "select count(*) from messages where ledger / 100000000000 % 10 = 1 and kind <> 'child'"
        ) == [(1,)]


def test_a_signal_that_comes_early_waits_for_a_later_turn(timed, hand):
    @timed.workflow
    def loop(heard: list[int]) -> list[int]:
        heard = [*heard, wait("n", int)]
        return again(heard) if len(heard) < 3 else heard

    job = loop.submit([])
    for n in range(3):
        job.send("n", n, id=str(n))
    hand.work_all()
    assert job.result(5) == [0, 1, 2]


def test_a_step_has_its_tries_in_every_turn(timed, hand):
    failed = set()

    @timed.step(retry=Retry(2, first=0.001))
    def flaky(turn: int) -> int:
        if turn not in failed:
            failed.add(turn)
            raise ConnectionError("the first try always fails")
        return turn

    @timed.workflow
    def loop(turn: int) -> int:
        flaky(turn)
        return again(turn + 1) if turn < 3 else turn

    job = loop.submit(1)
    hand.work_all()
    assert job.result(5) == 3


def test_a_value_drawn_in_one_turn_is_not_that_of_the_next(timed, hand):
    @timed.step(retry=Retry(2, first=0.001))
    def flaky(turn: int) -> None:
        if turn == 1 and not drawn[1:]:
            drawn.append("failed")
            raise ConnectionError

    @timed.workflow
    def loop(turn: int) -> str:
        drawn.append(value := str(uuid()))
        flaky(turn)
        return again(turn + 1) if turn < 2 else value

    drawn: list[str] = []
    job = loop.submit(1)
    hand.work_all()
    assert job.result(5) not in drawn[:1]


@pytest.mark.parametrize("early", [True, False], ids=["the signal is there", "the signal comes later"])
def test_a_value_drawn_before_a_wait_is_the_same_after_it(timed, hand, early):
    drawn, deaths = [], [1]

    @timed.workflow
    def flow() -> None:
        drawn.append(str(uuid()))
        wait("go", bool)
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    if early:
        job.send("go", True)
    outcome = hand.work()
    if not early:
        job.send("go", True)
        outcome = hand.work()
    assert outcome == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert len(set(drawn)) == 1
    assert check_books(timed) == []


def test_a_value_drawn_for_a_child_is_the_same_after_the_crash_that_follows_the_spawn(
    timed, hand, monkeypatch
):
    drawn = []

    @timed.workflow
    def child(word: str) -> str:
        return word

    @timed.workflow
    def parent() -> bool:
        drawn.append(str(uuid()))
        return gather(child.child(drawn[-1]), child.child(drawn[-1])) == (drawn[-1], drawn[-1])

    job = parent.submit()
    segment = hand.claim()

    def die(_segment, *_waits, **_told) -> None:
        raise Death

    # The last bundle of births is written with the wait; here that is the second.
    small_spawns(monkeypatch.setattr, 1)
    with monkeypatch.context() as patch:
        patch.setattr(type(segment), "awaiting", die)
        assert hand.run(segment) == "died"
    hand.expire()
    hand.work_all()
    assert job.result(5) is True
    assert len(set(drawn)) == 1


def test_a_child_that_ends_after_its_group_has_closed_counts_neither_at_first_nor_on_replay(timed, hand):
    """The parent is claimed because enough have ended; another one ends before it goes on."""
    seen = []

    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> None:
        seen.append(gather(*(child.child(n) for n in range(3)), enough=1))
        wait("go", bool)

    job = parent.submit()
    assert [hand.work(), hand.work()] == ["Await", "EndJob"]
    others = hand.claim_many(3)
    (woken,) = [segment for segment in others if segment.job_id == job.id]
    others.remove(woken)
    assert hand.run(others[0]) == "EndJob"
    assert hand.run(woken) == "Await"
    assert hand.run(others[1]) == "EndJob"
    job.send("go", True)
    assert hand.work() == "EndJob"
    assert seen == [(0,), (0,)]


def test_enough_children_are_the_same_on_replay_whoever_has_ended_since(timed, hand):
    seen = []

    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> list[int]:
        first = gather(*(child.child(n) for n in range(4)), enough=2)
        seen.append(list(first))
        wait("go", bool)
        return list(first)

    job = parent.submit()
    assert [hand.work() for _ in range(3)] == ["Await", "EndJob", "EndJob"]
    hand.work_all()
    job.send("go", True)
    hand.work_all()
    assert job.result(5) == seen[0]
    assert all(one == seen[0] for one in seen)


def test_a_signal_sent_before_the_timeout_and_durable_after_it_does_not_overtake_it(timed, hand, clock):
    """The message that drives a segment answers its wait, or its obligation would close the job early."""
    deaths = [1]

    @timed.step
    def work() -> None:
        if deaths:
            deaths.pop()
            raise Death

    @timed.workflow
    def flow() -> str | None:
        answer = wait("go", str, timeout="1m")
        work()
        return answer

    job = flow.submit()
    hand.work()
    clock.advance(60_000)
    segment = hand.claim()
    assert job.send("go", "late") is Delivered.KEPT
    assert hand.run(segment) == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) is None
    assert job.row().semaphore == 0


def test_a_job_that_dies_over_and_over_after_its_wake_up_is_closed_by_that_message(timed, hand, clock):
    @timed.workflow(attempts=2)
    def child() -> None:
        wait("go", bool)
        raise Death

    @timed.workflow
    def parent() -> str:
        try:
            gather(child.child())
        except ChildrenFailed as error:
            (failed,) = error.errors
            assert isinstance(failed, TallyError)
            return str(failed.fields["error_code"])
        return "fine"

    job = parent.submit()
    hand.work_all()
    child_id = f"{job.id}.0.1.00000000"
    timed.job(child_id).send("go", True, id="1")
    while hand.work() == "died":
        hand.expire()
    hand.work_all()
    assert job.result(5) == "ATTEMPTS_SPENT"
    assert timed.job(child_id).row().semaphore == 0
    with timed.transaction() as db:
        ledgers = db.execute("select kind, ledger from messages order by kind")
    assert ledgers == [
        ("child", 111_100_000_001),
        ("resume", 111_100_000_002),
        ("signal", 111_100_000_001),
    ]
    assert not check_books(timed)
