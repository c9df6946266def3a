"""What operators watch: workers, what was ended in each minute, and what waits; every answer is bounded."""

from __future__ import annotations

from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.rows import (
    FORGET_WORKER_MS,
    KEEP_COUNTS_MS,
    SILENT_MS,
    EndedCount,
    LeaveWorker,
    QueueDepth,
    ReportWorker,
)
from tallystick.store.api import HoldJob, Store, searched
from tallystick.store.inspection import Watched
from tallystick.testing.conformance.drafts import claim, claimed, done, submission
from tallystick.testing.conformance.subject import Subject

MINUTE_MS = 60_000


def seen(store: Store) -> Watched:
    """Return the store as monitoring sees it."""
    assert isinstance(store, Watched)
    return store


def report(owner: str, running: int = 0, *ended: tuple[str, int]) -> ReportWorker:
    """Return what a worker says of itself."""
    return ReportWorker(owner, "host", 7, "1.0", '["default"]', 4, running, ended=ended)


class Watching:
    """Rows that workers write of themselves, and counts."""

    def test_a_worker_is_shown_as_it_last_reported(self, subject: Subject) -> None:
        done(subject.store, report("a"))
        began = subject.clock.wall_ms()
        subject.clock.advance(1_000)
        done(subject.store, report("b"))
        subject.clock.advance(1_000)
        done(subject.store, report("a", 3))
        first, second = seen(subject.store).workers(10)
        assert (first.owner, first.running, first.heard_at) == ("a", 3, began + 2_000)
        assert (first.started_at, second.owner, second.running) == (began, "b", 0)
        assert [worker.owner for worker in seen(subject.store).workers(1)] == ["a"]

    def test_a_worker_that_leaves_is_gone_and_a_silent_one_is_told_from_the_living(
        self, subject: Subject
    ) -> None:
        done(subject.store, report("a"))
        done(subject.store, report("b"))
        done(subject.store, LeaveWorker("b"))
        done(subject.store, LeaveWorker("b"))
        (left,) = seen(subject.store).workers(10)
        assert left.is_live(left.heard_at + SILENT_MS - 1)
        assert not left.is_live(left.heard_at + SILENT_MS)

    def test_workers_and_counts_of_long_ago_are_forgotten(self, subject: Subject) -> None:
        done(subject.store, report("old", 0, ("SUCCEEDED", 2)))
        subject.clock.advance(max(FORGET_WORKER_MS, KEEP_COUNTS_MS) + MINUTE_MS)
        done(subject.store, report("new", 0, ("SUCCEEDED", 1)))
        assert [worker.owner for worker in seen(subject.store).workers(10)] == ["new"]
        assert [count.ended for count in seen(subject.store).ended(0)] == [1]

    def test_ended_jobs_are_counted_by_minute_and_state_over_all_workers(self, subject: Subject) -> None:
        minute = subject.clock.wall_ms() // MINUTE_MS
        done(subject.store, report("a", 0, ("FAILED_FINAL", 1), ("SUCCEEDED", 2)))
        done(subject.store, report("a", 0, ("SUCCEEDED", 3)))
        done(subject.store, report("b", 0, ("SUCCEEDED", 5)))
        subject.clock.advance(MINUTE_MS)
        done(subject.store, report("b", 0, ("SUCCEEDED", 7)))
        assert seen(subject.store).ended(minute * MINUTE_MS) == [
            EndedCount(minute, "FAILED_FINAL", 1),
            EndedCount(minute, "SUCCEEDED", 10),
            EndedCount(minute + 1, "SUCCEEDED", 7),
        ]
        assert seen(subject.store).ended((minute + 1) * MINUTE_MS) == [EndedCount(minute + 1, "SUCCEEDED", 7)]
        assert searched(subject.store).ended_of_workers((minute + 1) * MINUTE_MS) == {"b": 7}

    def test_each_hold_is_counted_by_itself_up_to_a_limit(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        for number, hold in enumerate([Hold.IN_DOUBT, *[Hold.PAUSED] * 4, Hold.MISMATCH]):
            done(store, submission(clock, f"0{number}", tenant_id="acme" if number % 2 else "default"))
            done(store, HoldJob(f"0{number}", hold, "for this test"))
        assert seen(store).backlog(2).held == {"PAUSED": 2, "IN_DOUBT": 1, "MISMATCH": 1}
        assert seen(store).backlog().held == {"PAUSED": 4, "IN_DOUBT": 1, "MISMATCH": 1}

    def test_a_queue_is_as_deep_as_the_jobs_that_are_due_in_it(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        now = clock.wall_ms()
        for queue, priority in (("mail", 1), ("mail", 9), ("default", 5), ("other", 5)):
            done(store, submission(clock, queue=queue, priority=priority))
        done(store, submission(clock, queue="mail", ready_at=now + 60_000))
        held = submission(clock, queue="other")
        done(store, held)
        clock.advance(1_000)
        done(store, HoldJob(held.job.job_id, Hold.PAUSED, "for this test"))
        claimed(store, claim())
        backlog = seen(store).backlog()
        assert backlog.now == now + 1_000
        assert backlog.queues == [QueueDepth("mail", 2, now), QueueDepth("other", 1, now)]
        assert backlog.held == {"PAUSED": 1}
        assert (backlog.outbox, backlog.outbox_at, backlog.tick_at) == (0, None, None)
        assert backlog.schedules_held == 0
