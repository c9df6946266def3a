"""The fifteen digits of effects in the tables of real jobs, after every commit, on every store."""

from __future__ import annotations

import pytest

from tallystick import Key, NotDone, Retry, wait
from tallystick.testing.stepping import check_books, die, reclaim
from tests.app import digits_by_hand as expected


class Ledgers:
    """What the tables say of the digits of a job."""

    def __init__(self, app, job) -> None:
        self._app, self._job = app, job

    def _rows(self, query: str) -> list[tuple]:
        with self._app.connect() as db:
            return db.execute(query)

    def look(self, what: str) -> tuple:
        own = f"job_id = '{self._job.id}'"
        ((root, start, semaphore),) = self._rows(
            f"select root_ledger, start_ledger, semaphore from jobs where {own}"
        )
        steps = self._rows(f"select ledger from steps where {own} and kind = 'effect'")
        messages = self._rows(f"select ledger from messages where {own} and kind = 'result'")
        activity, message = (f"{rows[0][0]:015d}" if rows else None for rows in (steps, messages))
        assert check_books(self._app) == []
        return (what, f"{root:015d}", f"{start:015d}", semaphore, activity, message)


@pytest.mark.parametrize("then", ["returns", "waits"])
def test_an_effect_through_every_commit(timed, hand, then):
    seen = []

    @timed.effect(key="{n}", retry=Retry(2, first="1ms"))
    def act(key: Key, n: int) -> int:
        calls = sum(what.startswith("called") for what, *_rest in seen)
        seen.append(ledgers.look("called" if not calls else "called again"))
        if not calls:
            raise NotDone
        return n

    @timed.step
    def work() -> None:
        seen.append(ledgers.look("went on"))

    @timed.workflow
    def flow() -> None:
        act(1)
        work()
        if then == "waits":
            wait("more", bool)

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    seen.append(ledgers.look("submitted"))
    hand.work()
    seen.append(ledgers.look("returned" if then == "returns" else "suspended"))
    assert seen == (expected.EFFECT if then == "returns" else expected.EFFECT_AND_WAIT)


def test_an_effect_that_a_person_answers(timed, hand, clock):
    @timed.effect(key="{n}", timeout="1s")
    def act(key: Key, n: int) -> int:
        die()

    @timed.workflow
    def flow() -> int:
        return act(1)

    job = flow.submit()
    ledgers = Ledgers(timed, job)
    hand.work()
    seen = [ledgers.look("lost")]
    hand.expire()
    reclaim(timed)
    seen.append(ledgers.look("in doubt"))
    job.resolve(happened=1)
    seen.append(ledgers.look("answered"))
    hand.work()
    seen.append(ledgers.look("returned"))
    assert seen == expected.EFFECT_IN_DOUBT


def test_an_effect_that_another_job_has_done(timed, hand):
    @timed.effect(key="{n}")
    def act(key: Key, n: int) -> int:
        return n

    @timed.workflow
    def flow() -> int:
        return act(1)

    flow.submit()
    hand.work()
    job = flow.submit()
    hand.work()
    assert Ledgers(timed, job).look("known") == expected.EFFECT_KNOWN
