"""Waiting and waking: what is suspended together, what a message finds, which are held and which go on."""

from __future__ import annotations

from tallystick.clock import Clock
from tallystick.core.chain import Chain
from tallystick.core.verbs.holds import Held, Hold
from tallystick.store.api import (
    Answer,
    Await,
    ClaimedJob,
    Deliver,
    Delivered,
    Fact,
    Group,
    HoldJob,
    Overdue,
    Spawn,
    Wait,
)
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    submission,
)
from tallystick.testing.conformance.subject import Subject


def waiting(held: ClaimedJob, clock: Clock, *waits: Wait) -> Await:
    """Return the wait of a segment for any of these."""
    fact = Fact(held.chain, "suspend", clock.wall_ms(), held.fence.attempt, "{}")
    return Await(held.fence, held.driver, held.dimension, waits, fact)


def signal(job_id: str, name: str, guid: str, payload: str = "1") -> Deliver:
    """Return a signal."""
    return Deliver(guid, job_id, "signal", name, payload)


A, B, NAP = Wait("wait", "a", 1, None), Wait("wait", "b", 1, None), Wait("sleep", "sleep", 1, 0)


class Waits:
    """Suspension and delivery, between which no wake-up falls."""

    def test_waits_that_wait_together_are_open_together_and_the_first_answer_leaves_the_others(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        job_id = held.fence.job_id
        nap = NAP._replace(due_at=clock.wall_ms() + 1_000)
        assert done(store, waiting(held, clock, A, B, nap)) is None
        job = store.job(job_id)
        assert job is not None
        assert (job.semaphore, job.ready_at) == (3, nap.due_at)
        assert done(store, signal(job_id, "b", "b-1")) is Delivered.WOKE
        (again,) = claimed(store, claim())
        assert done(store, waiting(again, clock, A, B, nap)) == Answer("b-1", "1", timed_out=False, place=1)
        assert done(store, waiting(again, clock, A, nap)) is None
        clock.advance(1_000)
        (third,) = claimed(store, claim())
        outcome = done(store, waiting(third, clock, A, nap))
        assert isinstance(outcome, Answer)
        assert (outcome.timed_out, outcome.place) == (True, 1)
        done(store, finish(third, clock)._replace(waited=True, driver=third.driver))
        job = store.job(job_id)
        assert job is not None
        assert (job.state, job.semaphore) == ("SUCCEEDED", 0)
        assert sorted(row.state for row in subject.steps()) == [
            "CANCELLED",
            "SUCCEEDED",
            "SUCCEEDED",
        ]
        assert subject.stale_reports() == []
        check_chain(store.history(job_id))

    def test_an_answer_that_is_there_opens_the_other_waits_and_starts_their_timers(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        job_id = held.fence.job_id
        timed = A._replace(due_at=clock.wall_ms() + 500)
        assert done(store, signal(job_id, "b", "b-1")) is Delivered.KEPT
        outcome = done(store, waiting(held, clock, timed, B))
        assert isinstance(outcome, Answer)
        assert outcome.place == 1
        clock.advance(200)
        late = A._replace(due_at=clock.wall_ms() + 500)
        assert done(store, waiting(held, clock, late)) is None
        job = store.job(job_id)
        assert job is not None
        assert (job.semaphore, job.ready_at) == (1, timed.due_at)

    def test_messages_are_taken_in_the_order_of_their_arrival(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        job_id = held.fence.job_id
        for number, guid in enumerate(["z", "m", "a"]):
            assert done(store, signal(job_id, "n", guid, str(number))) is Delivered.KEPT
            clock.jump_wall(-1_000)
        assert store.has_signal(job_id, ["n", "other"])
        assert not store.has_signal(job_id, ["other"])
        taken = [done(store, waiting(held, clock, Wait("wait", "n", nth, None))) for nth in (1, 2, 3)]
        assert [answer.payload for answer in taken if isinstance(answer, Answer)] == ["0", "1", "2"]
        assert not store.has_signal(job_id, ["n"])

    def test_a_message_says_what_became_of_it(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        job_id = held.fence.job_id
        assert done(store, signal("nobody", "a", "1")) is Delivered.ABSENT
        assert done(store, waiting(held, clock, A)) is None
        assert done(store, signal(job_id, "b", "2")) is Delivered.KEPT
        assert done(store, signal(job_id, "a", "3")) is Delivered.WOKE
        assert done(store, signal(job_id, "a", "3")) is Delivered.KNOWN
        (again,) = claimed(store, claim())
        done(store, waiting(again, clock, A))
        done(store, finish(again, clock)._replace(waited=True, driver=again.driver))
        assert done(store, signal(job_id, "a", "4")) is Delivered.DROPPED

    def test_a_job_is_held_where_it_waits_and_goes_on_from_there(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        job_id = held.fence.job_id
        hold = HoldJob(job_id, Hold.SUSPEND_SWALLOWED, "for this test", since=1)
        assert done(store, hold) is Held.MOVED
        assert done(store, waiting(held, clock, A)) is None
        assert done(store, hold._replace(since=2)) is Held.MOVED
        assert done(store, hold) is Held.HELD
        assert done(store, hold) is Held.ALREADY
        assert done(store, signal(job_id, "a", "1")) is Delivered.WOKE
        assert claimed(store, claim()) == []
        job = store.job(job_id)
        assert job is not None
        assert (job.hold, job.hold_reason, job.state) == ("SUSPEND_SWALLOWED", "for this test", "IN_PROGRESS")
        assert [event.type for event in store.history(job_id)][-1] == "hold"
        check_chain(store.history(job_id))

    def test_a_job_that_was_claimed_again_is_not_held_by_an_earlier_attempt(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, waiting(held, clock, A))
        done(store, signal(held.fence.job_id, "a", "1"))
        (again,) = claimed(store, claim())
        late = HoldJob(held.fence.job_id, Hold.SUSPEND_SWALLOWED, "too late", since=held.fence.attempt)
        assert done(store, late) is Held.MOVED
        done(store, waiting(again, clock, A))
        assert subject.stale_reports() == []


class TagsAndOrphans:
    """What is found by its tag, and which children end with their parent."""

    def test_jobs_are_found_by_their_tags(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        for number, tags in enumerate(['["a","b"]', '["b"]', None, '["ab"]']):
            done(store, submission(clock, f"job-{number}", tags=tags))

        def found(tag: str, after: str | None = None) -> list[str]:
            page = store.jobs(tenant_id="default", states=(), handler=None, after=after, limit=9, tag=tag)
            return [job.job_id for job in page]

        assert (found("a"), found("b"), found("c")) == (["job-0"], ["job-1", "job-0"], [])
        assert found("b", after="job-1") == ["job-0"]

    def test_a_detached_child_goes_on_when_its_parent_ends_and_others_are_asked_to_end(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        children = []
        for name in ("attached", "detached"):
            job = submission(clock, name, tags='["child"]').job._replace(detached=int(name == "detached"))
            children.append((job, Fact(Chain(name), "submit", clock.wall_ms(), 0, "{}")))
        shape = (Group(0, "gather", 1), 2, 0, False)
        spawn = Spawn(held.fence, held.chain, *shape, tuple(children), clock.wall_ms())
        assert done(store, spawn) is False
        done(store, finish(held, clock)._replace(waited=True))
        assert store.overdue(10) == [Overdue("attached", late=False)]
        assert [job.fence.job_id for job in claimed(store, claim(9))] == ["detached"]
        tagged = store.jobs(tenant_id="default", states=(), handler=None, after=None, limit=9, tag="child")
        assert [job.job_id for job in tagged] == ["detached", "attached"]
