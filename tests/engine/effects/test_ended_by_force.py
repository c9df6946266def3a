"""A person ends a job before it is known what came of its effect: that stays open, and is found out."""

from __future__ import annotations

import pytest

from tallystick import DidNotHappen, Happened, Key, Retry, Tally
from tallystick.core.effects.requests import Settled
from tallystick.engine.retention import PruningEffects
from tallystick.errors import BadInput, NotResolved
from tallystick.testing.stepping import SteppedWorker, ask_effects, cancel_overdue, check_books, die, reclaim

CALL_LEASE_MS = 2_000 + 5_000
SETTLE_MS = 60_000
DAY_MS = 86_400_000


@pytest.fixture
def answers():
    """What the probe says next."""
    return []


@pytest.fixture
def pay(timed, answers):
    """A workflow that dies in its call; its effect has a probe."""

    def look(key: Key, order: int) -> object:
        return answers.pop(0)

    @timed.effect(key="charge:{order}", probe=look, timeout="2s", settle="1m", retry=Retry(2, first="1ms"))
    def charge(key: Key, order: int) -> str:
        die()

    @timed.workflow
    def buy(order: int) -> str:
        return charge(order)

    return buy


@pytest.fixture
def forced(timed, hand, clock, pay):
    """A job that was ended in the middle of its call."""
    job = pay.submit(7)
    assert hand.work() == "died"
    # To ask, and to wait until its time is over, ends nothing.
    assert job.cancel(grace=0) == "CANCELLING"
    clock.advance(1)
    cancel_overdue(timed)
    assert job.row().state == "CANCELLING"
    assert job.cancel(force=True) == "CANCELLED"
    assert (keys(timed), check_books(timed)) == ([("charge:7", "COMMITTED", None, None)], [])
    (fact,) = (fact for fact in job.history() if fact.name == "cancel")
    assert '"abandons":{"0/charge#1":"charge:7"}' in fact.payload
    return job


def keys(app) -> list[tuple]:
    with app.connect() as db:
        return [tuple(row) for row in db.execute("select key, state, outcome, ended_by from effect_keys")]


def lose(app, clock) -> None:
    """Let the call run out, and its time to settle."""
    clock.advance(CALL_LEASE_MS)
    assert reclaim(app) == 1
    clock.advance(SETTLE_MS)


@pytest.mark.parametrize(
    ("answer", "outcome"), [(Happened("receipt 1"), "HAPPENED"), (DidNotHappen(), "NOT_DONE")]
)
def test_its_effect_is_probed_on(timed, clock, forced, answers, answer, outcome):
    answers.append(answer)
    lose(timed, clock)
    assert ask_effects(timed) == 1
    assert (keys(timed), check_books(timed)) == ([("charge:7", "DONE", outcome, "probe")], [])
    assert forced.row().state == "CANCELLED"


def test_its_effect_is_resolved_by_its_key(timed, clock, forced):
    with pytest.raises(NotResolved, match="a worker may be at it"):
        timed.resolve(key="charge:7", happened="receipt 1")
    lose(timed, clock)
    with pytest.raises(NotResolved, match="no effect in doubt has it"):
        timed.resolve(key="charge:8", happened="receipt 1")
    with pytest.raises(NotResolved, match="its job has ended or was asked to, so it is not called again"):
        timed.resolve(key="charge:7", retry=True)
    with pytest.raises(BadInput, match="say one thing"):
        timed.resolve(key="charge:7")
    assert timed.resolve(key="charge:7", happened="receipt 1", by="ann") is Settled.DONE
    assert (keys(timed), check_books(timed)) == ([("charge:7", "DONE", "HAPPENED", "ann")], [])


def test_others_wait_for_its_key_and_hear(timed, hand, clock, forced, pay):
    other = pay.submit(7)
    assert hand.work() == "Await"
    lose(timed, clock)
    timed.resolve(key="charge:7", happened="receipt 1")
    assert (hand.work(), other.result(1), check_books(timed)) == ("EndJob", "receipt 1", [])


def test_several_effects_under_one_key_are_told_apart(timed, hand, clock):
    @timed.effect(key="{order}", timeout="2s")
    def charge(key: Key, order: int) -> str:
        die()

    @timed.effect(key="{order}", timeout="2s")
    def ship(key: Key, order: int) -> str:
        die()

    @timed.workflow
    def both(what: str) -> str:
        return charge(7) if what == "charge" else ship(7)

    jobs = [both.submit(what) for what in ("charge", "ship")]
    assert (hand.work(), hand.work()) == ("died", "died")
    for job in jobs:
        assert job.cancel(force=True) == "CANCELLED"
    clock.advance(CALL_LEASE_MS)
    assert reclaim(timed) == 2
    with pytest.raises(NotResolved, match="several effects have it: charge, ship"):
        timed.resolve(key="7", did_not_happen=True)
    assert timed.resolve(key="7", effect="ship", did_not_happen=True) is Settled.DONE
    assert timed.resolve(key="7", did_not_happen=True) is Settled.DONE
    assert check_books(timed) == []


def test_it_is_never_pruned_while_it_is_open(timed, clock, forced):
    clock.advance(DAY_MS)
    runtime = timed.runtime()
    pruning = PruningEffects(runtime.committer, 1_000, 0.0)
    assert (timed.prune(older_than="1h"), pruning.tick(0.0), len(keys(timed))) == (0, 0, 1)


def test_effects_that_ended_go_when_they_were_kept_long_enough_and_their_job_is_gone(url, clock):
    app = Tally(url, clock=clock, keep_effects="30d")
    assert app.keep_effects_ms == 30 * DAY_MS
    hand = SteppedWorker(app, clock)
    calls = []

    @app.effect(key="{order}", timeout="2s")
    def charge(key: Key, order: int) -> int:
        calls.append(order)
        return len(calls)

    @app.workflow
    def buy(order: int) -> int:
        return charge(order)

    try:
        buy.submit(7)
        hand.work()
        pruning = PruningEffects(app.runtime().committer, 30 * DAY_MS, 0.0)
        clock.advance(31 * DAY_MS)
        assert (pruning.tick(1.0), len(keys(app)), check_books(app)) == (0, 1, [])
        assert app.prune(older_than="1d") == 1
        # The key outlives its job until it was kept long enough.
        job = buy.submit(7)
        assert (hand.work(), job.result(1), len(calls)) == ("EndJob", 1, 1)
        assert (pruning.tick(10_000_000.0), len(keys(app)), check_books(app)) == (1, 0, [])
        again = buy.submit(7)
        assert (hand.work(), again.result(1), len(calls)) == ("EndJob", 2, 2)
    finally:
        app.close()
