"""Answers that a claim brings: the wait takes the message that woke its job, as if it had been asked for."""

from __future__ import annotations

from tallystick.clock import Clock
from tallystick.core.verbs.holds import Hold
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import (
    Answer,
    Await,
    Bundle,
    CancelJob,
    ClaimedJob,
    Deliver,
    EndJob,
    Fact,
    Fence,
    HoldJob,
    Outcome,
    TakeAnswer,
    Wait,
    Wake,
)
from tallystick.testing.conformance.drafts import (
    LEASE_MS,
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
)
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import CLOSED, SETTLED, WORD_CLOSED, WORD_SETTLED

GO = Wait("wait", "go", 1, None)
NAP = Wait("sleep", "sleep", 1, 0)
# What differs between two jobs that did the same.
_OWN = {
    "job_id",
    "guid",
    "lease_id",
    "head_hash",
    "prev_hash",
    "event_hash",
    "rev",
    "exec_id",
    "lease_expires_at",
}


def awaiting(held: ClaimedJob, clock: Clock, wait: Wait) -> Await:
    """Return a wait that asks the store."""
    fact = Fact(held.chain, "suspend", clock.wall_ms(), held.fence.attempt, "{}")
    return Await(held.fence, held.driver, held.dimension, (wait,), fact)


def taking(held: ClaimedJob, clock: Clock, wait: Wait) -> TakeAnswer:
    """Return a wait that takes what the claim brought."""
    assert held.wake is not None
    assert held.wake.answers(wait, held.dimension)
    return TakeAnswer(held.fence, held.chain, held.dimension, wait, held.wake, clock.wall_ms())


def ending(held: ClaimedJob, clock: Clock, *, waited: bool = False) -> EndJob:
    """Return the end of a job that a message woke."""
    return finish(held, clock)._replace(driver=held.driver, waited=waited)


def woken(subject: Subject, count: int, wait: Wait) -> list[ClaimedJob]:
    """Return so many jobs that waited for the same and were claimed again because it came."""
    store, clock = subject.store, subject.clock
    jobs = [held_job(store, clock) for _ in range(count)]
    wait = wait._replace(due_at=None if wait.due_at is None else clock.wall_ms() + 500)
    for held in jobs:
        assert done(store, awaiting(held, clock, wait)) is None
        if wait.kind == "wait":
            done(store, Deliver(f"m:{held.fence.job_id}", held.fence.job_id, "signal", wait.name, "7"))
    clock.advance(500)
    found = {again.fence.job_id: again for again in claimed(store, claim(count))}
    return [found[held.fence.job_id] for held in jobs]


def of_job(subject: Subject, fence: Fence) -> list[list[dict[str, object]]]:
    """Return the books of one job without what only tells jobs apart; a claim names its lease."""
    return [
        [
            {
                name: value
                for name, value in row.items()
                if name not in _OWN and (name != "payload" or row.get("type") != "claim")
            }
            for row in rows
        ]
        for rows in subject.books(fence.job_id).values()
    ]


def applied(subject: Subject, *batch: Bundle) -> list[Outcome | BaseException]:
    """Write bundles in one flush."""
    return list(subject.store.apply(batch))


class AnswerPromises:
    """Taking what a claim brought, alone, in a flush of many, and where it is refused."""

    def test_a_claim_brings_the_message_that_woke_its_job(self, subject: Subject) -> None:
        (signalled,) = woken(subject, 1, GO)
        guid = f"m:{signalled.fence.job_id}"
        assert signalled.wake == Wake(guid, "signal", 0, "go", 1, "7", taken=False)
        assert signalled.driver == guid
        (rested,) = woken(subject, 1, NAP)
        assert rested.wake is not None
        assert rested.wake[1:] == ("timer", 0, "sleep", 1, None, False)
        assert held_job(subject.store, subject.clock).wake is None

    def test_what_is_taken_and_ended_in_one_flush_has_the_books_of_what_was_asked_for(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        for wait in (GO, NAP, GO._replace(due_at=0)):
            asked, *others = woken(subject, 5, wait)
            done(store, awaiting(asked, clock, wait))
            done(store, ending(asked, clock, waited=True))
            (alone, *together) = others
            assert applied(subject, (taking(alone, clock, wait), ending(alone, clock))) == [None]
            batch = [(taking(held, clock, wait), ending(held, clock)) for held in together]
            assert applied(subject, *batch) == [None, None, None]
            books = [of_job(subject, held.fence) for held in (asked, *others)]
            assert all(book == books[0] for book in books)
            for held in others:
                check_chain(store.history(held.fence.job_id))

    def test_a_message_is_given_to_one_wait(self, subject: Subject) -> None:
        """A crash after the taking: the next claim finds the wait answered and the message taken."""
        store, clock = subject.store, subject.clock
        (held,) = woken(subject, 1, GO)
        assert done(store, taking(held, clock, GO)) is None
        clock.advance(LEASE_MS)
        (expired,) = store.expired(9)
        assert expired.fence == held.fence
        done(store, CancelJob(held.fence.job_id, 0, force=True))
        assert [row.ledger for row in subject.steps()] == [CLOSED]

    def test_an_answer_that_is_too_late_spoils_no_other_of_its_flush(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        good, late, second = woken(subject, 3, GO)
        stale = late._replace(fence=late.fence._replace(lease_id="another"))
        outcomes = applied(
            subject,
            (taking(good, clock, GO), ending(good, clock)),
            (taking(stale, clock, GO), ending(stale, clock)),
            (taking(second, clock, GO), ending(second, clock)),
        )
        assert (outcomes[0], outcomes[2]) == (None, None)
        assert isinstance(outcomes[1], StaleLease)
        states = {row.job_id: (row.state, row.semaphore) for row in subject.jobs()}
        assert states == {
            good.fence.job_id: ("SUCCEEDED", 0),
            late.fence.job_id: ("IN_PROGRESS", 1),
            second.fence.job_id: ("SUCCEEDED", 0),
        }
        for held in (good, late, second):
            check_chain(store.history(held.fence.job_id))

    def test_a_job_that_ends_without_taking_what_woke_it_is_closed_all_the_same(
        self, subject: Subject
    ) -> None:
        clock = subject.clock
        first, second = woken(subject, 2, GO)
        assert applied(subject, (ending(first, clock),), (ending(second, clock),)) == [None, None]
        assert [(row.state, row.semaphore) for row in subject.jobs()] == [("SUCCEEDED", 0)] * 2
        assert all(row.acked_at is not None for row in subject.messages())
        assert [row.state for row in subject.steps()] == ["CANCELLED"] * 2

    def test_what_else_is_in_the_inbox_ends_with_the_job(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        first, second = woken(subject, 2, GO)
        for held in (first, second):
            done(store, Deliver(f"n:{held.fence.job_id}", held.fence.job_id, "signal", "go", "8"))
        batch = [(taking(held, clock, GO), ending(held, clock)) for held in (first, second)]
        assert applied(subject, *batch) == [None, None]
        ledgers = sorted((row.guid[:1], row.ledger, row.acked_at is None) for row in subject.messages())
        assert ledgers == [("m", WORD_CLOSED, False)] * 2 + [("n", 0, False)] * 2

    def test_an_answer_is_taken_though_the_job_was_asked_to_end_and_its_end_is_the_one_asked_for(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        (held,) = woken(subject, 1, GO)
        done(store, CancelJob(held.fence.job_id, 1_000))
        (outcome,) = applied(subject, (taking(held, clock, GO), ending(held, clock)))
        assert isinstance(outcome, EndJob)
        assert outcome.state == "CANCELLED"
        assert [(row.state, row.semaphore) for row in subject.jobs()] == [("CANCELLED", 0)]

    def test_an_answer_is_taken_though_the_job_is_held(self, subject: Subject) -> None:
        """As a step that was on its way is: the segment hears of the hold at its next call."""
        store, clock = subject.store, subject.clock
        (held,) = woken(subject, 1, GO)
        done(store, HoldJob(held.fence.job_id, Hold.PAUSED, "for this test"))
        assert done(store, taking(held, clock, GO)) is None
        assert [row.state for row in subject.steps()] == ["SUCCEEDED"]

    def test_an_answer_brings_the_signals_behind_it_and_they_are_taken_in_one_bundle(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        for number in range(6):
            done(store, Deliver(f"m{number}", held.fence.job_id, "signal", "go", str(number)))
            done(store, Deliver(f"n{number}", held.fence.job_id, "signal", "other", None))
        answer = done(store, awaiting(held, clock, GO)._replace(ahead=3))
        assert isinstance(answer, Answer)
        assert [(wake.guid, wake.payload, wake.occurrence) for wake in answer.ahead] == [
            (f"m{number}", str(number), None) for number in (1, 2, 3)
        ]
        takes = [
            TakeAnswer(
                held.fence,
                held.chain,
                0,
                GO._replace(occurrence=number),
                answer.ahead[number - 2],
                clock.wall_ms(),
            )
            for number in (2, 3, 4)
        ]
        (fifth,) = applied(subject, (*takes, awaiting(held, clock, GO._replace(occurrence=5))))
        assert isinstance(fifth, Answer)
        assert (fifth.guid, fifth.ahead) == ("m4", ())
        ledgers = {row.guid: row.ledger for row in subject.messages()}
        assert [ledgers[f"m{number}"] for number in range(6)] == [WORD_SETTLED] * 5 + [0]
        assert [row.ledger for row in subject.steps()] == [SETTLED] * 5
        check_chain(store.history(held.fence.job_id))
        (twice,) = applied(subject, (takes[0]._replace(wait=GO._replace(occurrence=6)),))
        assert isinstance(twice, InvariantBroken)
        assert len(subject.steps()) == 5
