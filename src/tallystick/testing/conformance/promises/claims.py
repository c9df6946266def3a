"""Which worker gets which job, in which order, and that no worker gets one twice."""

from __future__ import annotations

from threading import Event

import pytest

from tallystick.clock import SystemClock
from tallystick.core.ledger.decisions import Reclaim
from tallystick.store.api import ClaimedJob, Store
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    lose_all,
    reclaim,
    release,
    step,
    submission,
    suspects,
)
from tallystick.testing.conformance.pictures import AttemptPicture, JobPicture
from tallystick.testing.conformance.race import race
from tallystick.testing.conformance.subject import Subject


def ids(found: list[ClaimedJob]) -> list[str]:
    """Return the jobs of a claim, in order."""
    return [held.fence.job_id for held in found]


def plant_due(subject: Subject, job_id: str, hold: str | None = None) -> None:
    """Write a job by hand that is due before all others."""
    now = subject.clock.wall_ms()
    subject.plant(JobPicture(job_id, "QUEUED", now, now, ready_at=now - 9, hold=hold))


def settled(store: Store) -> int:
    """Return the pulse once it has stood still for a moment; a store may be told of changes with a delay."""
    for _ in range(100):
        before = store.pulse()
        if not any(store.pulse() != before or Event().wait(0.005) for _ in range(20)):
            return before
    raise AssertionError("the pulse never stands still")


class ClaimPromises:
    """Best priority first, then the longest wait; only what is due, free and known."""

    def test_claims_follow_priority_and_then_the_time_a_job_became_due(self, subject: Subject) -> None:
        now = subject.clock.wall_ms()
        for job_id, priority, ready_at in (
            ("late", 5, now),
            ("early", 5, now - 10),
            ("urgent", 0, now),
            ("whenever", 9, now - 1_000),
        ):
            done(subject.store, submission(subject.clock, job_id, priority=priority, ready_at=ready_at))
        assert ids(claimed(subject.store, claim(3))) == ["urgent", "early", "late"]
        assert ids(claimed(subject.store, claim(3))) == ["whenever"]

    def test_a_job_is_claimed_when_it_is_due_and_not_before(self, subject: Subject) -> None:
        due = subject.clock.wall_ms() + 1_000
        done(subject.store, submission(subject.clock, "later", ready_at=due))
        assert claimed(subject.store, claim()) == []
        assert subject.store.next_due(("default", "other")) == due
        subject.clock.advance(999)
        assert claimed(subject.store, claim()) == []
        subject.clock.advance(1)
        assert ids(claimed(subject.store, claim())) == ["later"]
        assert subject.store.next_due(("default", "other")) is None

    def test_a_job_that_is_due_and_left_does_not_hide_when_the_next_one_is(self, subject: Subject) -> None:
        now = subject.clock.wall_ms()
        done(subject.store, submission(subject.clock, "left", ready_at=now))
        done(subject.store, submission(subject.clock, "later", ready_at=now + 50))
        assert subject.store.next_due(("default",)) == now
        assert subject.store.next_due(("default",), now) == now + 50
        subject.clock.advance(50)
        assert subject.store.next_due(("default",), now + 50) is None

    def test_a_future_job_of_better_priority_stops_nobody(self, subject: Subject) -> None:
        done(
            subject.store,
            submission(subject.clock, "future", priority=0, ready_at=subject.clock.wall_ms() + 1),
        )
        done(subject.store, submission(subject.clock, "due", priority=9))
        assert ids(claimed(subject.store, claim())) == ["due"]

    def test_a_held_job_is_not_claimed(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, release(held, subject.clock, hold="MISMATCH"))
        assert claimed(subject.store, claim()) == []
        job = subject.store.job(held.fence.job_id)
        assert job is not None
        assert (job.hold, job.hold_reason, job.state) == ("MISMATCH", "for this test", "IN_PROGRESS")

    def test_a_due_job_with_a_hold_is_passed_over(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, "free"))
        plant_due(subject, "paused", hold="PAUSED")
        assert ids(claimed(subject.store, claim(9))) == ["free"]
        assert subject.store.next_due(("default",)) is None

    def test_a_worker_gets_only_handlers_and_versions_that_it_knows(self, subject: Subject) -> None:
        for job_id, handler, version in (("a", "pay", ""), ("b", "pay", "2"), ("c", "ship", "")):
            done(subject.store, submission(subject.clock, job_id, handler=handler, version=version))
        assert ids(claimed(subject.store, claim(9, handlers=[("pay", "2")]))) == ["b"]
        assert claimed(subject.store, claim(9, handlers=[("pay", "3"), ("shi", "p")])) == []
        assert claimed(subject.store, claim(9, handlers=[])) == []
        assert ids(claimed(subject.store, claim(9, handlers=[("ship", ""), ("pay", "")]))) == ["a", "c"]

    def test_a_worker_gets_only_its_queues_in_the_order_it_names_them(self, subject: Subject) -> None:
        for queue in ("mail", "bulk", "rare"):
            done(subject.store, submission(subject.clock, queue, queue=queue))
        assert claimed(subject.store, claim(9)) == []
        assert ids(claimed(subject.store, claim(9, queues=["rare", "mail"]))) == ["rare", "mail"]
        assert ids(claimed(subject.store, claim(9, queues=["bulk", "mail"]))) == ["bulk"]

    def test_a_job_that_nobody_may_claim_does_not_stop_the_others(self, subject: Subject) -> None:
        broken, other = held_job(subject.store, subject.clock), submission(subject.clock, "other")
        done(subject.store, other)
        plant_due(subject, "odd")
        subject.plant(AttemptPicture("odd", "", 1, "IN_PROGRESS", "x", "e", 1, "w"))
        assert "other" in ids(claimed(subject.store, claim(2)))
        done(subject.store, step(broken, subject.clock))

    def test_claims_of_one_flush_share_what_there_is(self, subject: Subject) -> None:
        for _ in range(5):
            done(subject.store, submission(subject.clock))
        request = claim(2)
        outcomes = subject.store.apply([(request,)] * 4)
        shares = [outcome for outcome in outcomes if isinstance(outcome, list)]
        assert sorted(len(share) for share in shares) == [0, 1, 2, 2]
        assert len({job_id for share in shares for job_id in ids(share)}) == 5

    def test_four_processes_never_claim_a_job_twice(self, subject: Subject) -> None:
        store = subject.open(SystemClock())
        try:
            wishes = [submission(SystemClock()) for _ in range(200)]
            assert store.apply([(wish,) for wish in wishes]) == [None] * 200
            shares = race(subject.url, "take", [[1], [2], [3], [7]])
        finally:
            store.close()
        taken = [job_id for share in shares for job_id in share]
        assert sorted(taken) == sorted(wish.job.job_id for wish in wishes)
        assert [row.attempt for row in subject.attempts()] == [1] * 200


class Clocks:
    """Leases live on the boot clock, due times on the wall clock."""

    def test_jumps_of_the_wall_clock_expire_nothing(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock, lease_ms=1_000)
        for jump in (86_400_000, -2 * 86_400_000):
            clock.jump_wall(jump)
            assert store.expired(10) == []
            done(store, step(held, clock, f"jump{jump}"))
        clock.advance(1_000)
        assert len(store.expired(10)) == 1
        check_chain(store.history(held.fence.job_id))

    def test_a_reboot_ends_every_lease(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        jobs = [held_job(store, clock, lease_ms=86_400_000) for _ in range(3)]
        clock.reboot(boot_ms=5)
        expired = store.expired(10)
        assert {gone.fence for gone in expired} == {held.fence for held in jobs}
        assert store.apply([(reclaim(gone),) for gone in expired]) == [Reclaim.RETRY] * 3
        taken = claimed(store, claim(3))
        assert len(taken) == 3, "jobs that lost one worker are claimed together"
        for held in taken:
            done(store, finish(held, clock))
            check_chain(store.history(held.fence.job_id))
        assert store.counts() == {"SUCCEEDED": 3}

    def test_jobs_that_lost_one_worker_are_claimed_together(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        for _ in range(3):
            held_job(store, clock, lease_ms=100)
        assert lose_all(store, clock, 100) == 3
        again = claimed(store, claim(3)._replace(suspects=False))
        assert [job.suspect for job in again] == [False] * 3

    def test_suspects_are_claimed_one_at_a_time_and_only_by_who_may_have_one(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        suspects(store, clock, 3)
        assert claimed(store, claim(3)._replace(suspects=False)) == []
        assert len(claimed(store, claim(3))) == 1
        assert len(claimed(store, claim(3))) == 1

    @pytest.mark.parametrize(("budget", "suspects"), [(2, [True]), (3, [False, False])])
    def test_a_job_that_lost_one_worker_is_a_suspect_if_its_next_attempt_is_its_last(
        self, subject: Subject, budget: int, suspects: list[bool]
    ) -> None:
        store, clock = subject.store, subject.clock
        options = f'{{"attempts_max":{budget}}}'
        for _ in range(2):
            done(store, submission(clock, options=options))
        assert len(claimed(store, claim(2, lease_ms=100))) == 2
        assert lose_all(store, clock, 100) == 2
        assert [job.suspect for job in claimed(store, claim(2))] == suspects

    def test_a_suspect_that_recorded_a_step_is_none_any_more(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        suspects(store, clock, 1)
        (held,) = claimed(store, claim(lease_ms=100))
        assert held.suspect
        done(store, step(held, clock))
        assert lose_all(store, clock, 100) == 1
        assert [job.suspect for job in claimed(store, claim())] == [False]

    def test_a_queue_headed_by_suspects_still_fills_a_claim(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        suspects(store, clock, 5)
        clock.advance(1)
        for priority in (5, 5, 5, 5, 9, 9):
            done(store, submission(clock, priority=priority))
        assert [job.suspect for job in claimed(store, claim(2)._replace(suspects=False))] == [False] * 2
        assert [job.suspect for job in claimed(store, claim(4))] == [True, False, False, False]
        assert [job.suspect for job in claimed(store, claim(9))] == [True, False]

    def test_expired_attempts_come_oldest_first_and_up_to_the_limit(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        jobs = [held_job(store, clock, lease_ms=lease_ms) for lease_ms in (300, 100, 200)]
        clock.advance(300)
        assert [gone.fence for gone in store.expired(2)] == [jobs[1].fence, jobs[2].fence]


class ReadPromises:
    """What people and programs look at."""

    def test_pages_of_jobs_go_from_the_newest_to_the_oldest(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        made = [f"job-{number}" for number in range(5)]
        for job_id in made:
            done(store, submission(clock, job_id, handler="pay" if job_id != "job-2" else "ship"))
        done(store, submission(clock, "foreign", tenant_id="other"))
        first = store.jobs(tenant_id="default", states=(), handler=None, after=None, limit=2)
        assert [job.job_id for job in first] == ["job-4", "job-3"]
        rest = store.jobs(tenant_id="default", states=["QUEUED"], handler="pay", after="job-3", limit=9)
        assert [job.job_id for job in rest] == ["job-1", "job-0"]
        assert store.jobs(tenant_id="default", states=["SUCCEEDED"], handler=None, after=None, limit=9) == []

    def test_a_page_without_a_tenant_has_the_jobs_of_all(self, subject: Subject) -> None:
        store = subject.store
        done(store, submission(subject.clock, "job-0", tags='["x"]'))
        done(store, submission(subject.clock, "job-1", tenant_id="other", tags='["x"]'))
        for tag in (None, "x"):
            page = store.jobs(tenant_id=None, states=(), handler=None, after=None, limit=9, tag=tag)
            assert [(job.job_id, job.tenant_id) for job in page] == [("job-1", "other"), ("job-0", "default")]

    def test_a_change_by_another_opening_is_noticed_soon_and_once(self, subject: Subject) -> None:
        other = subject.open(subject.clock)
        try:
            before = settled(subject.store)
            done(other, submission(subject.clock))
            assert any(subject.store.pulse() != before or Event().wait(0.01) for _ in range(500))
            settled(subject.store)
        finally:
            other.close()

    def test_what_is_not_there_is_none_or_empty(self, subject: Subject) -> None:
        store = subject.store
        assert store.job("nobody") is None
        assert store.history("nobody") == []
        assert store.finished(["nobody"]) == {"nobody": None}
        assert store.finished_children(["nobody"]) == {}
        assert store.expired(5) == []
        assert store.counts() == {}
        assert store.next_due(("default",)) is None
