"""What a turn, a wait or a fork costs does not depend on what is over, nor on what waits for others.

Counted in the steps of SQLite's own machine, which no busy neighbour disturbs. What PostgreSQL reads for the
same statements is in `tests/postgres/statements/test_cost_of_the_past.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest

from tallystick import again, sleep, wait

pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)

FEW, MANY = 20, 300


class Steps:
    """Counts the steps of SQLite's machine, of both connections of a store."""

    def __init__(self, app) -> None:
        """Begin to count, while nobody uses the connections; the app closes them."""
        store = app.runtime().store
        self._counted = 0
        with store._writing, store._reading:
            for connection in (store._writer, store._reader):
                connection.set_progress_handler(self._tick, 1)

    def _tick(self) -> bool:
        self._counted += 1
        return False

    def of(self, work: Callable[[], object]) -> int:
        """Return how many it took to do some work."""
        before = self._counted
        work()
        return self._counted - before


def same(early: list[int], late: list[int]) -> bool:
    """Tell whether the late costs are no more than the early ones; now and then the log is moved."""
    return median(late) <= 1.02 * median(early)


@pytest.mark.slow
def test_a_turn_costs_the_same_however_many_there_were(timed, hand):
    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def loop(n: int) -> None:
        wait("go", int)
        work(n)
        sleep("1s")
        again(n + 1)

    job = loop.submit(0)
    hand.work()
    steps = Steps(timed)

    def turn() -> None:
        job.send("go", 1)
        assert timed.runtime().store.has_signal(job.id, ["go"])
        hand.work()
        hand.clock.advance(1_000)
        assert hand.work() == "Cycle"
        hand.work()

    costs = [steps.of(turn) for _ in range(MANY)]
    assert same(costs[FEW - 10 : FEW], costs[-10:]), (costs[FEW - 10 : FEW], costs[-10:])


@pytest.mark.parametrize("turns", [True, False], ids=["one a turn", "all in one turn"])
@pytest.mark.slow
def test_a_signal_costs_the_same_however_many_wait_behind_it(timed, hand, turns):
    steps = Steps(timed)
    costs: list[int] = []

    @timed.workflow
    def listen(left: int) -> int:
        while left:
            costs.append(steps.of(lambda: wait("go", int)))
            left -= 1
            if turns and left:
                again(left)
        return left

    job = listen.submit(MANY)
    timed.send_many([job] * MANY, "go", 1)
    timed.send_many([job] * MANY, "other", 1)
    between = [steps.of(hand.work) for _ in range(MANY if turns else 1)]
    assert job.result(5) == 0
    assert same(costs[-10:], costs[:10]), (costs[:10], costs[-10:])
    # The last one ends the job, and with it drops what nobody took.
    assert not turns or same(between[-11:-1], between[1:11]), (between[1:11], between[-11:])


def test_sending_costs_the_same_however_many_wait_in_the_inbox_or_were_taken(timed, hand):
    @timed.workflow
    def listen() -> None:
        for _ in range(MANY):
            wait("go", int)
        wait("never", int)

    job = listen.submit()
    hand.work()
    steps = Steps(timed)
    into_an_inbox = [steps.of(lambda: job.send("other", 1)) for _ in range(MANY)]
    assert same(into_an_inbox[FEW - 10 : FEW], into_an_inbox[-10:])
    timed.send_many([job] * (MANY - 1), "go", 1)
    hand.work_all()
    after = [steps.of(lambda: job.send("other", 1)) for _ in range(10)]
    assert same(into_an_inbox[-10:], after)


@pytest.mark.slow
def test_a_lost_worker_is_noticed_at_the_same_cost_however_many_turns_there_were(timed, hand):
    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def loop(n: int) -> None:
        work(n)
        again(n + 1)

    loop.submit(0)
    hand.work()
    steps = Steps(timed)

    def lose() -> int:
        assert hand.claim() is not None
        cost = steps.of(hand.expire)
        cost += steps.of(hand.work)
        return cost

    early = lose()
    for _ in range(MANY):
        hand.work()
    assert same([early], [lose()])


def test_a_fork_costs_twice_as_much_for_twice_as_many_records(timed, hand):
    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def flow(n: int) -> None:
        for number in range(n):
            work(number)

    steps = Steps(timed)
    costs = []
    for records in (MANY, 2 * MANY):
        job = flow.submit(records)
        hand.work_all()
        costs.append(steps.of(lambda job=job, last=f"work#{records}": job.fork(at=last)))
        hand.work_all()
    assert costs[1] < 2.2 * costs[0], costs
