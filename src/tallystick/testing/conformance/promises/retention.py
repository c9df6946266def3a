"""Retention: what ended long ago goes whole, children before parents; everything else stays."""

from __future__ import annotations

import pytest

from tallystick.core.chain import Chain
from tallystick.errors import TallyError
from tallystick.store.api import (
    Bundle,
    CancelJob,
    ClaimedJob,
    Deliver,
    Fact,
    Group,
    NewJob,
    Pruned,
    PruneJobs,
    RecordEvent,
    Spawn,
    StoredEvent,
    TrimTurns,
    TurnEnd,
)
from tallystick.testing.conformance.drafts import (
    claim,
    claimed,
    done,
    fail,
    finish,
    held_job,
    step,
    submission,
)
from tallystick.testing.conformance.pictures import (
    AttemptPicture,
    DirectivePicture,
    MessagePicture,
    Picture,
    StepPicture,
)
from tallystick.testing.conformance.promises.waiting import turning
from tallystick.testing.conformance.subject import Subject

DAY_MS = 86_400_000


def kept(subject: Subject) -> set[str]:
    """Return the jobs that are still there."""
    return {row.job_id for row in subject.jobs()}


def finished(subject: Subject) -> str:
    """Make a job with a step, a signal that was not taken, and an end."""
    held = held_job(subject.store, subject.clock)
    job_id = held.fence.job_id
    done(subject.store, step(held, subject.clock))
    done(subject.store, Deliver(f"{job_id}:s", job_id, "signal", "hello", "1"))
    done(subject.store, finish(held, subject.clock))
    return job_id


def with_child(subject: Subject) -> tuple[ClaimedJob, ClaimedJob]:
    """Return a parent and its only child, both at work."""
    parent = held_job(subject.store, subject.clock)
    now = subject.clock.wall_ms()
    child_id = f"{parent.fence.job_id}.0"
    job = NewJob(child_id, "{}", now, None, now, "default", "workflow", "child", "", "default", 5, "{}")
    born = (job, Fact(Chain(child_id), "submit", now, 0, "{}"))
    done(subject.store, Spawn(parent.fence, parent.chain, Group(0, "gather", 1), 1, 0, False, (born,), now))
    (child,) = claimed(subject.store, claim(handlers=[("child", "")]))
    return parent, child


def prune(subject: Subject, *, older_ms: int = DAY_MS, limit: int = 100) -> int:
    """Look at a stretch of jobs and return how many went."""
    gone = done(subject.store, PruneJobs(older_ms, limit))
    assert isinstance(gone, Pruned)
    return gone.jobs


def turned(subject: Subject) -> tuple[ClaimedJob, StoredEvent]:
    """Return a job at work in its second turn, and the fact that has ended the first."""
    first = held_job(subject.store, subject.clock)
    done(subject.store, step(first, subject.clock))
    done(subject.store, turning(subject, first))
    (held,) = claimed(subject.store, claim())
    (end,) = subject.store.inspect().turn_ends(held.fence.job_id, limit=10)
    return held, end


def trimming(subject: Subject, held: ClaimedJob, end: StoredEvent) -> Bundle:
    """Return the bundle that removes the first turn."""
    fact = Fact(held.chain, "trim", subject.clock.wall_ms(), held.fence.attempt, "{}")
    over = TurnEnd(0, end.n, end.event_hash, end.attempt)
    return (RecordEvent(held.fence, fact), TrimTurns(end.job_id, over))


def debt(owed: type[Picture], job_id: str, at: int) -> Picture:
    """Return something of a job that has not ended."""
    debts: tuple[Picture, ...] = (
        StepPicture(job_id, "open", 1, "effect", "IN_PROGRESS", at),
        MessagePicture("late", job_id, "late", "signal", at),
        AttemptPicture(job_id, "charge#1", 1, "COMMITTED", "lease", "epoch", at, "worker"),
        DirectivePicture(
            *("directive", "default", job_id, "pack#1", 1, "lease", "PENDING", "warehouse", "{}", at, at)
        ),
    )
    return next(one for one in debts if type(one) is owed)


class Retention:
    """Whole jobs go, and only those that may."""

    def test_a_job_goes_with_all_its_books_when_its_time_has_come(self, subject: Subject) -> None:
        job_id = finished(subject)
        subject.clock.advance(DAY_MS - 1)
        assert prune(subject) == 0
        assert kept(subject) == {job_id}
        subject.clock.advance(1)
        assert prune(subject) == 1
        assert not any(subject.books().values())
        assert prune(subject) == 0

    def test_failed_jobs_go_too_and_unfinished_ones_never(self, subject: Subject) -> None:
        failed = held_job(subject.store, subject.clock)
        done(subject.store, fail(failed, subject.clock))
        running = held_job(subject.store, subject.clock, lease_ms=10 * DAY_MS)
        waiting = submission(subject.clock)
        done(subject.store, waiting)
        subject.clock.advance(2 * DAY_MS)
        assert prune(subject) == 1
        assert kept(subject) == {running.fence.job_id, waiting.job.job_id}
        done(subject.store, finish(running, subject.clock))

    def test_a_batch_is_bounded_and_takes_the_oldest_first(self, subject: Subject) -> None:
        jobs = []
        for _ in range(5):
            jobs.append(finished(subject))
            subject.clock.advance(10)
        subject.clock.advance(DAY_MS)
        assert prune(subject, limit=2) == 2
        assert kept(subject) == set(jobs[2:])
        assert prune(subject, limit=100) == 3

    def test_the_key_of_a_job_that_went_is_free_and_that_of_another_is_not(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, key="gone", idempotency_key="gone"))
        (held,) = claimed(subject.store, claim())
        done(subject.store, finish(held, subject.clock))
        done(subject.store, submission(subject.clock, key="stays", idempotency_key="stays"))
        subject.clock.advance(DAY_MS)
        assert prune(subject) == 1
        assert [row.value for row in subject.reservations()] == ["stays"]
        again = submission(subject.clock, key="gone", idempotency_key="gone")
        assert done(subject.store, again) is None

    def test_children_go_before_their_parent_and_not_before_it_may_go(self, subject: Subject) -> None:
        parent, child = with_child(subject)
        home = (parent.fence.job_id, "0:gather#1")
        done(subject.store, finish(child, subject.clock)._replace(parent=home))
        subject.clock.advance(2 * DAY_MS)
        assert prune(subject) == 0, "the parent is at work and may look at its child"
        done(subject.store, CancelJob(parent.fence.job_id, 0, force=True))
        assert prune(subject) == 0, "the parent has ended only now"
        subject.clock.advance(DAY_MS)
        assert prune(subject) == 1
        assert kept(subject) == {parent.fence.job_id}
        assert prune(subject) == 1
        assert not any(subject.books().values())

    def test_a_stretch_says_where_the_next_begins_and_the_young_are_not_looked_at(
        self, subject: Subject
    ) -> None:
        running = [held_job(subject.store, subject.clock, lease_ms=9 * DAY_MS) for _ in range(4)]
        names = sorted(held.fence.job_id for held in running)
        subject.clock.advance(DAY_MS)
        assert done(subject.store, PruneJobs(0, 2)) == Pruned(0, names[1])
        assert done(subject.store, PruneJobs(0, 2, names[1])) == Pruned(0, names[3])
        assert done(subject.store, PruneJobs(0, 2, names[3])) == Pruned(0, None)
        assert done(subject.store, PruneJobs(2 * DAY_MS, 2)) == Pruned(0, None)

    def test_turns_that_are_over_go_with_all_that_stood_in_them(self, subject: Subject) -> None:
        held, end = turned(subject)
        done(subject.store, step(held, subject.clock))
        done(subject.store, Deliver(f"{end.job_id}:s", end.job_id, "signal", "hello", "1"))
        assert subject.store.apply([trimming(subject, held, end)]) == [None]
        assert [one.attempt for one in subject.attempts()] == [2]
        assert [one.n for one in subject.facts()] == [end.n + 1, end.n + 3]
        assert {one.name for one in subject.messages()} == {"again", "hello"}, (
            "what drives it, and what waits"
        )
        line = subject.store.inspect().trimmed(end.job_id)
        assert line is not None
        assert (line.dimension, line.last_n, line.head_hash) == (0, end.n, end.event_hash.hex())
        done(subject.store, finish(held, subject.clock)._replace(driver=held.driver, waited=True))

    def test_no_turn_goes_without_the_lease_or_before_it_is_over(self, subject: Subject) -> None:
        held, end = turned(subject)
        before = subject.books()
        stale = held._replace(fence=held.fence._replace(lease_id="another"))
        for bundle in (trimming(subject, stale, end), trimming(subject, held, end._replace(n=end.n - 1))):
            (outcome,) = subject.store.apply([bundle])
            assert isinstance(outcome, TallyError)
            assert subject.books() == before
        assert subject.store.inspect().trimmed(end.job_id) is None

    @pytest.mark.parametrize("owed", [StepPicture, MessagePicture, AttemptPicture, DirectivePicture])
    def test_a_job_that_owes_anything_stays(self, subject: Subject, owed: type[Picture]) -> None:
        """A final job owes nothing; if one did, its books would be the only trace of it."""
        job_id = finished(subject)
        subject.plant(debt(owed, job_id, subject.clock.wall_ms()))
        subject.clock.advance(DAY_MS)
        assert prune(subject) == 0
        assert kept(subject) == {job_id}
