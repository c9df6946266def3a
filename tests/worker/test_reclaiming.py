"""What a sweep makes of attempts in every state: rows are planted by hand, as no SQL store leaves them."""

from __future__ import annotations

import pytest

from tallystick import gather
from tallystick.core.ledger.decisions import Reclaim
from tallystick.errors import StaleLease
from tallystick.store.api import Fence, ReclaimAttempt
from tallystick.testing.stepping import LEASE_MS, Death, cancel_overdue, reclaim


def asked(app, statement: str) -> list[tuple]:
    with app.transaction() as db:
        return db.execute(statement)


def commit(app, job, result: str = "42") -> None:
    """Leave a job as a store without wide transactions leaves it: its work committed, its end not written."""
    asked(app, f"UPDATE jobs SET result = '{result}' WHERE job_id = '{job.id}'")
    asked(
        app,
        f"UPDATE attempts SET status = 'COMMITTED' WHERE job_id = '{job.id}' AND status = 'IN_PROGRESS'",
    )


def statuses(app, job) -> list[str]:
    rows = asked(app, f"SELECT status FROM attempts WHERE job_id = '{job.id}' ORDER BY unit, attempt")
    return [status for (status,) in rows]


@pytest.fixture
def calls():
    return []


@pytest.fixture
def flow(timed, calls):
    @timed.workflow
    def flow() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise Death
        return 7

    return flow


@pytest.fixture
def lost(timed, hand, flow):
    """A job whose worker has died."""
    job = flow.submit()
    assert hand.work() == "died"
    return job


def test_what_is_committed_is_finished_and_its_function_is_not_called_again(timed, hand, lost, calls):
    commit(timed, lost)
    for _ in range(3):
        hand.expire()
        hand.work_all()
    assert (lost.state(), lost.result(1), calls) == ("SUCCEEDED", 42, [1])
    assert statuses(timed, lost) == ["DONE"]
    row = asked(timed, "SELECT semaphore, root_ledger, start_ledger FROM jobs")
    assert row == [(0, 1_111_100_000_001, 111_100_000_001)]
    ((fact,),) = asked(timed, "SELECT payload FROM events WHERE type = 'reclaim'")
    assert '"verdict":"FINISH"' in fact


def test_a_claim_does_not_take_what_is_committed_however_due_it_is(timed, hand, lost, calls, clock):
    commit(timed, lost)
    asked(timed, "UPDATE jobs SET ready_at = 1")
    assert hand.work() == "idle"
    clock.advance(LEASE_MS)
    assert hand.work() == "idle"
    assert reclaim(timed) == 1
    assert (lost.result(1), calls) == (42, [1])


def test_what_is_committed_is_left_to_its_holder_while_the_lease_is_live(timed, hand, lost):
    commit(timed, lost)
    assert reclaim(timed) == 0
    assert hand.runtime.store.expired(9) == []
    assert statuses(timed, lost) == ["COMMITTED"]


def test_an_attempt_that_is_leased_and_never_began_is_reclaimed(timed, hand, lost, calls):
    asked(timed, "DROP TRIGGER attempts_guard" + ("" if timed.url.startswith("sqlite") else " ON attempts"))
    if not timed.url.startswith("sqlite"):
        asked(timed, "DROP TRIGGER attempts_moves ON attempts")
    asked(timed, "UPDATE attempts SET status = 'LEASED'")
    assert hand.expire() == 1
    assert statuses(timed, lost) == ["ABORTED"]
    hand.work_all()
    assert (lost.result(1), len(calls)) == (7, 2)


def test_a_child_whose_work_is_committed_counts_in_its_group(timed, hand):
    calls = []

    @timed.workflow
    def child() -> int:
        calls.append(1)
        raise Death

    @timed.workflow
    def parent() -> int:
        return sum(gather(child.child()))

    job = parent.submit()
    assert hand.work() == "Await", "it waits"
    assert hand.work() == "died"
    ((child_id,),) = asked(timed, "SELECT job_id FROM jobs WHERE parent_job_id IS NOT NULL")
    commit(timed, timed.job(child_id))
    hand.expire()
    hand.work_all()
    assert (job.result(1), calls) == (42, [1])


def test_a_held_job_whose_work_is_committed_is_finished_when_it_is_resumed(timed, hand, lost, calls):
    lost.pause()
    commit(timed, lost)
    assert hand.expire() == 0
    assert statuses(timed, lost) == ["COMMITTED"]
    lost.resume()
    assert hand.expire() == 1
    assert (lost.result(1), calls) == (42, [1])


@pytest.mark.parametrize("force", [False, True])
def test_what_is_committed_cannot_be_cancelled_any_more(timed, hand, lost, clock, force):
    commit(timed, lost)
    lost.cancel(grace="0ms" if force else "1h")
    assert (lost.state(), statuses(timed, lost)) == ("IN_PROGRESS", ["COMMITTED"])
    clock.advance(LEASE_MS)
    lost.cancel(grace="0ms" if force else "1h")
    assert (lost.state(), lost.result(1), statuses(timed, lost)) == ("SUCCEEDED", 42, ["DONE"])


@pytest.mark.parametrize("who", ["sweep", "end_overdue"])
def test_a_job_that_was_asked_to_end_before_its_commit_is_cancelled_and_its_attempt_done(
    timed, hand, lost, clock, who
):
    """No verb of ours commits such a job; whoever did, both rows have an end."""
    lost.cancel(grace="1ms")
    commit(timed, lost)
    clock.advance(LEASE_MS)
    (reclaim if who == "sweep" else cancel_overdue)(timed)
    assert (lost.state(), statuses(timed, lost)) == ("CANCELLED", ["DONE"])


def test_a_holder_that_has_committed_writes_nothing_more(timed, hand, flow):
    """Its fence is refused like any other that does not hold, in lists and alone; others are written."""
    job, other = flow.submit(), flow.submit()
    segments = hand.claim_many(2)
    (mine,) = [segment for segment in segments if segment.job_id == job.id]
    (theirs,) = [segment for segment in segments if segment.job_id == other.id]
    commit(timed, job)
    for late in (mine.given_back(), mine.returned("1"), mine.cancelled_by_request()):
        (outcome,) = timed.runtime().committer.call_all([late])
        assert isinstance(outcome, StaleLease)
    outcomes = timed.runtime().committer.call_all([mine.put_away(), theirs.returned("5")])
    assert isinstance(outcomes[0], StaleLease)
    assert (other.result(1), statuses(timed, job)) == (5, ["COMMITTED"])


def test_what_is_gone_or_has_ended_is_left(timed, hand, lost):
    ((attempt, lease_id),) = asked(timed, "SELECT attempt, lease_id FROM attempts")
    hand.expire()
    for fence in (Fence(lost.id, attempt, lease_id), Fence("nobody", 1, "l")):
        assert timed.runtime().committer.call((ReclaimAttempt(fence),)) is Reclaim.LEAVE
