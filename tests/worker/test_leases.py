"""One lease, one writer: takeover is automatic, stale writers are refused, poison ends."""

from __future__ import annotations

import pytest

from tallystick import JobFailed, Retry, Tx
from tallystick.errors import DeadlineExceeded, StaleLease
from tallystick.testing.stepping import LEASE_MS, Death, SteppedWorker, cancel_overdue, reclaim


def effects(app):
    with app.transaction() as db:
        return [row[0] for row in db.execute("select who from effects order by who")]


@pytest.fixture
def charging(timed, put):
    with timed.transaction() as db:
        db.execute("create table effects (who text)")

    @timed.tx
    def charge(db: Tx, who: str) -> None:
        db.execute(put, [who])

    return charge


def test_a_slow_worker_cannot_write_after_its_replacement(timed, clock, charging):
    """FM_001: the lease runs out, a second attempt does the work, and the first one wakes up too late."""
    slow, fast = SteppedWorker(timed, clock, "slow"), SteppedWorker(timed, clock, "fast")
    held = {}

    @timed.workflow
    def checkout() -> str:
        if "slow" in held:
            slow_segment = held.pop("slow")
            assert slow_segment is not None
            slow.expire()
            assert fast.work() == "EndJob"
        charging("once")
        return "charged"

    job = checkout.submit()
    held["slow"] = slow.claim()
    assert slow.run(held["slow"]) == "lost"
    assert job.result(5) == "charged"
    assert effects(timed) == ["once"]
    states = [(event.name, event.attempt) for event in job.history()]
    assert states == [("submit", 0), ("claim", 1), ("reclaim", 1), ("claim", 2), ("tx", 2), ("return", 2)]


def test_an_expired_worker_cannot_commit_even_if_nobody_reclaimed_it(timed, hand, clock, charging):
    @timed.workflow
    def checkout() -> None:
        clock.advance(LEASE_MS)
        charging("late")

    checkout.submit()
    assert hand.work() == "lost"
    assert effects(timed) == []


def test_the_ending_of_a_job_is_fenced_too(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        clock.advance(LEASE_MS)
        return "too late"

    job = flow.submit()
    segment = hand.claim()
    with pytest.raises(StaleLease):
        hand.run(segment)
    assert job.row().state == "IN_PROGRESS"
    assert job.row().result is None


def test_a_lease_is_measured_on_a_clock_that_no_administrator_can_move(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        clock.jump_wall(365 * 86_400_000)
        assert reclaim(timed) == 0
        return "fine"

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.result(5) == "fine"


def test_after_a_reboot_every_old_lease_has_ended(timed, hand, clock):
    deaths = [1]

    @timed.workflow
    def flow() -> str:
        if deaths:
            deaths.pop()
            raise Death
        return "fine"

    job = flow.submit()
    assert hand.work() == "died"
    clock.reboot()
    assert hand.work() == "idle"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "fine"


def test_a_job_that_kills_its_worker_every_time_ends_after_its_budget(timed, hand):
    runs = []

    @timed.workflow(attempts=3)
    def poison() -> None:
        runs.append(1)
        raise Death

    job = poison.submit()
    for _ in range(3):
        assert hand.work() == "died"
        assert hand.expire() == 1
    assert hand.work() == "idle"
    with pytest.raises(JobFailed, match="3 attempts in a row") as failed:
        job.result(5)
    assert failed.value.fields["error_code"] == "ATTEMPTS_SPENT"
    assert len(runs) == 3
    assert job.row().semaphore == 0


def test_a_job_that_makes_progress_is_not_poison(timed, hand):
    @timed.step
    def advance(n: int) -> int:
        return n

    @timed.workflow(attempts=2)
    def slow(target: int) -> int:
        for n in range(target):
            advance(n)
            if n >= len(lives):
                lives.append(n)
                raise Death
        return target

    lives = []
    job = slow.submit(6)
    for _ in range(6):
        assert hand.work() == "died"
        hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == 6
    assert job.row().attempt == 7


def test_a_workflow_with_a_retry_policy_is_run_again_later(timed, hand, clock):
    runs = []

    @timed.workflow(retry=Retry(3, first="10s"))
    def moody() -> str:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("not today")
        return "today"

    job = moody.submit()
    assert hand.work() == "EndAttempt"
    assert hand.work() == "idle"
    clock.advance(10_000)
    assert hand.work() == "EndAttempt"
    clock.advance(20_000)
    assert hand.work() == "EndJob"
    assert job.result(5) == "today"


def test_an_error_of_the_workflow_itself_is_final_by_default(timed, hand):
    @timed.workflow
    def broken() -> None:
        raise KeyError("typo")

    job = broken.submit()
    assert hand.work() == "EndJob"
    with pytest.raises(JobFailed, match="typo") as failed:
        job.result(5)
    assert failed.value.fields["type"] == "KeyError"


def test_a_job_past_its_deadline_is_cancelled_without_being_run(timed, hand, clock):
    runs = []

    @timed.workflow
    def late() -> None:
        runs.append(1)

    job = late.opts(deadline="1m").submit()
    clock.advance(60_000)
    assert hand.work() == "idle"
    cancel_overdue(timed)
    with pytest.raises(DeadlineExceeded):
        job.result(5)
    assert runs == []


def test_a_deadline_that_passes_in_the_middle_ends_the_job_at_its_next_call(timed, hand, clock):
    done = []

    @timed.step
    def work(n: int) -> None:
        done.append(n)

    @timed.workflow(deadline="5s")
    def flow() -> None:
        work(1)
        clock.advance(5_000)
        assert cancel_overdue(timed) == [job.id]
        segment.cancelled = True  # what the role does that ended it
        try:
            work(2)
        except Exception:  # noqa: BLE001 (this is the point: it does not help)
            done.append("caught")

    job = flow.submit()
    segment = hand.claim()
    assert hand.run(segment) == "EndJob"
    assert (job.state(), job.row().error_code) == ("CANCELLED", "DEADLINE")
    assert done == [1]


def test_stale_reports_are_refused_and_kept_for_people(timed, hand, clock):
    @timed.step
    def work() -> None: ...

    @timed.workflow
    def flow() -> None:
        clock.advance(LEASE_MS)
        work()

    job = flow.submit()
    assert hand.work() == "lost"
    with timed.transaction() as db:
        kept = db.execute("select job_id, attempt, report from stale_reports")
    assert kept == [(job.id, 1, "RecordStep")]


def test_the_reason_of_every_attempt_is_kept(timed, hand):
    deaths = [1]

    @timed.workflow
    def flow() -> None:
        if deaths:
            deaths.pop()
            raise Death

    flow.submit()
    hand.work()
    hand.expire()
    hand.work()
    with timed.transaction() as db:
        rows = db.execute("select attempt, status, reason, charged from attempts order by attempt")
    assert rows == [(1, "ABORTED", "EXPIRED", 1), (2, "DONE", None, 0)]


@pytest.mark.parametrize(("budget", "deaths"), [(2, 1), (3, 2), (5, 2)])
def test_a_job_that_kills_its_worker_does_not_spend_the_budget_of_those_beside_it(
    timed, clock, budget, deaths
):
    """They die together once, or twice where there is one attempt more; then no two suspects run at once."""

    @timed.workflow(attempts=budget)
    def poison() -> None:
        raise Death

    @timed.workflow(attempts=budget)
    def innocent(n: int) -> int:
        return n

    bad = poison.submit()
    good = [innocent.submit(n) for n in range(5)]
    worker = SteppedWorker(timed, clock)
    together = []
    for _ in range(20):
        # A worker with many slots claims what it may, and dies over the poisonous one before any record.
        claimed = worker.claim_many(10)
        if not claimed:
            if not worker.expire():
                break
            continue
        if any(segment.job_id == bad.id for segment in claimed):
            together.append(len(claimed))
            worker.expire()
            continue
        for segment in claimed:
            assert worker.run(segment) == "EndJob"
    assert together == [6] * deaths + [1] * (budget - deaths)
    assert bad.row().error_code == "ATTEMPTS_SPENT"
    assert [job.result(5) for job in good] == list(range(5))
    assert {job.row().attempt for job in good} == {deaths + 1}


def test_a_reclaimed_job_keeps_its_place_in_the_queue(timed, hand, clock):
    ran = []
    deaths = [1]

    @timed.workflow
    def flow(name: str) -> None:
        if deaths:
            deaths.pop()
            raise Death
        ran.append(name)

    flow.submit("first")
    clock.advance(1)
    flow.submit("second")
    assert hand.work() == "died"
    hand.expire()
    assert [hand.work(), hand.work()] == ["EndJob", "EndJob"]
    assert ran == ["first", "second"]
