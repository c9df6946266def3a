"""Waiting, turning and cancelling: which message acts, and that a report which comes too late says so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Literal

import pytest

from tallystick.clock import VirtualClock
from tallystick.core.ledger.decisions import first_to_act
from tallystick.core.lifecycles import JobState
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import (
    Answer,
    Await,
    CancelJob,
    ClaimedJob,
    Cycle,
    Deliver,
    Delivered,
    EndJob,
    Fact,
    Group,
    Primitive,
    Spawn,
    Wait,
)
from tallystick.testing.conformance.drafts import (
    FRESH,
    LEASE_MS,
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    outcome_of,
    reclaim,
    release,
)
from tallystick.testing.conformance.pictures import AttemptPicture, JobPicture, MessagePicture, StepPicture
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import OPENED, WORD_SETTLED

GO = Wait("wait", "go", 1, None)


def awaiting(subject: Subject, held: ClaimedJob, wait: Wait = GO) -> Await:
    """Return the wait of a segment."""
    fact = Fact(held.chain, "suspend", subject.clock.wall_ms(), held.fence.attempt, "{}")
    return Await(held.fence, held.driver, held.dimension, (wait,), fact)


def signal(job_id: str, guid: str = "m-1") -> Deliver:
    """Return a signal that answers the wait."""
    return Deliver(guid, job_id, "signal", "go", "1")


def ending(subject: Subject, held: ClaimedJob) -> EndJob:
    """Return the end of a job that has waited."""
    fact = Fact(held.chain, "return", subject.clock.wall_ms(), held.fence.attempt, "{}")
    return EndJob.of(held.fence, JobState.SUCCEEDED, fact, driver=held.driver, waited=True, result="1")


def turning(subject: Subject, held: ClaimedJob) -> Cycle:
    """Return the turn of a job."""
    fact = Fact(held.chain, "again", subject.clock.wall_ms(), held.fence.attempt, "{}")
    return Cycle(held.fence, held.driver, held.dimension, "[]", fact)


def spawning(subject: Subject, held: ClaimedJob) -> Spawn:
    """Return the opening of a group without children."""
    return Spawn(held.fence, held.chain, Group(0, "gather", 1), 1, 0, False, (), subject.clock.wall_ms())


class Inbox:
    """A suspended job with messages that could wake it, planted by hand."""

    def __init__(self, subject: Subject, begun: tuple[bool, ...]) -> None:
        """Plant them oldest first; one that has begun drove a segment before, which was lost."""
        self.job_id = FRESH.new()
        now = subject.clock.wall_ms()
        subject.plant(
            JobPicture(
                *(self.job_id, "IN_PROGRESS", now, now),
                attempt=1,
                ready_at=now,
                start_ledger=WORD_SETTLED,
                start_acked_at=now,
            ),
            AttemptPicture(self.job_id, "", 1, "ABORTED", "x", "e", 1, "w", reason="SUSPENDED"),
            StepPicture(self.job_id, "go", 1, "wait", "IN_PROGRESS", now, ledger=OPENED + sum(begun)),
        )
        self.guids = [f"{self.job_id}:{number}" for number in range(len(begun))]
        for number, (guid, entered) in enumerate(zip(self.guids, begun, strict=True)):
            entry = sum(begun[: number + 1]) if entered else 0
            subject.plant(
                MessagePicture(guid, self.job_id, "go", "signal", now + number, payload="1", ledger=entry)
            )


class WhoActs:
    """The claim and the wait choose the message that the rule chooses."""

    @pytest.mark.parametrize("kind", ["result", "child", "resume"])
    def test_a_message_that_an_open_wait_does_not_take_is_refused_and_wakes_nobody(
        self, subject: Subject, kind: Literal["result", "child", "resume"]
    ) -> None:
        """Otherwise it would drive its job, answer nothing, and drive it again."""
        store = subject.store
        held = held_job(store, subject.clock)
        word = Deliver("w-1", held.fence.job_id, kind, GO.name, "1")
        assert done(store, word) is Delivered.REFUSED
        assert done(store, awaiting(subject, held)) is None
        before = subject.books()
        assert done(store, word) is Delivered.REFUSED
        assert subject.books() == before
        assert not claimed(store, claim())

    def test_a_message_for_an_activity_that_is_open_wakes_its_job(self, subject: Subject) -> None:
        store = subject.store
        held = held_job(store, subject.clock)
        assert done(store, awaiting(subject, held)) is None
        assert done(store, Deliver("t-1", held.fence.job_id, "timer", GO.name, None)) is not Delivered.REFUSED
        assert [again.driver for again in claimed(store, claim())] == ["t-1"]

    @pytest.mark.parametrize("count", range(1, 5))
    def test_a_claim_and_its_wait_take_the_message_that_the_rule_names(
        self, subject: Subject, count: int
    ) -> None:
        """Every inbox of up to four messages, begun or not: the stores' order of rows is the rule's."""
        store = subject.store
        for begun in product([False, True], repeat=count):
            inbox = Inbox(subject, begun)
            first = first_to_act(begun)
            assert first is not None
            (held,) = claimed(store, claim())
            assert (held.fence.job_id, held.driver) == (inbox.job_id, inbox.guids[first])
            answer = done(store, awaiting(subject, held))
            assert isinstance(answer, Answer)
            assert answer.guid == held.driver


class LateReports:
    """A worker that no longer holds a job changes nothing in its books, and is told."""

    @pytest.mark.parametrize("how", [finish, release])
    def test_a_report_of_a_lost_attempt_in_the_same_flush_does_not_stop_the_live_one(
        self, subject: Subject, how: Callable[[ClaimedJob, VirtualClock], Primitive]
    ) -> None:
        """A worker that lost a job and has it again may end both attempts at once."""
        store, clock = subject.store, subject.clock
        lost = held_job(store, clock)
        clock.advance(LEASE_MS)
        done(store, reclaim(store.expired(1)[0]))
        (live,) = claimed(store, claim())
        outcomes = store.apply([(how(lost, clock),), (how(live, clock),)])
        assert isinstance(outcomes[0], StaleLease)
        assert outcomes[1] is None
        check_chain(store.history(live.fence.job_id))

    @pytest.mark.parametrize("report", [awaiting, ending, turning, spawning])
    def test_a_report_from_before_a_suspension_changes_nothing(
        self, subject: Subject, report: Callable[[Subject, ClaimedJob], Primitive]
    ) -> None:
        store = subject.store
        held = held_job(store, subject.clock)
        assert done(store, awaiting(subject, held)) is None
        before = subject.books()
        assert isinstance(outcome_of(store, report(subject, held)), StaleLease)
        assert subject.books() == before

    def test_a_second_request_to_end_changes_nothing(self, subject: Subject) -> None:
        store = subject.store
        held = held_job(store, subject.clock)
        ask = CancelJob(held.fence.job_id, 1_000)
        assert done(store, ask) == JobState.CANCELLING
        before = subject.books()
        assert done(store, ask._replace(grace_ms=9_000)) == JobState.CANCELLING
        assert subject.books() == before

    def test_a_second_cancellation_by_force_changes_nothing(self, subject: Subject) -> None:
        store = subject.store
        held = held_job(store, subject.clock)
        force = CancelJob(held.fence.job_id, 0, force=True)
        assert done(store, force) == JobState.CANCELLED
        before = subject.books()
        assert done(store, force) == JobState.CANCELLED
        assert isinstance(outcome_of(store, ending(subject, held)), StaleLease)
        assert subject.books() == before

    def test_a_job_whose_semaphore_is_not_what_it_has_open_is_not_closed_by_a_cancellation(
        self, subject: Subject
    ) -> None:
        """To set it to zero would hide that an activity was lost, or counted twice."""
        store, now = subject.store, subject.clock.wall_ms()
        held = held_job(store, subject.clock)
        done(store, awaiting(subject, held))
        job_id = held.fence.job_id
        subject.plant(MessagePicture("stray", job_id, "again", "resume", now, occurrence=1))
        before = subject.books()
        for force in (False, True):
            assert isinstance(outcome_of(store, CancelJob(job_id, 0, force=force)), InvariantBroken)
        assert subject.books() == before

    def test_a_message_for_an_ended_job_changes_nothing(self, subject: Subject) -> None:
        store = subject.store
        held = held_job(store, subject.clock)
        done(store, ending(subject, held))
        before = subject.books()
        done(store, signal(held.fence.job_id))
        assert subject.books() == before
