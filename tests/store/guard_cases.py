"""What the books of every store refuse, and books to try it on.

The books: job `j` runs in its second attempt under lease `l`; it has an open wait, a signal that nobody
took, a timer that lost, a message whose work is durable, one that is counted, and one that closed. Job
`over` has ended.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.clock import Clock
from tallystick.core.audit.book import Book
from tallystick.errors import InvariantBroken, StaleLease, TallyError
from tallystick.store.api import ClaimedJob, EndJob, JobRow, Primitive
from tallystick.testing.conformance.drafts import (
    claim,
    claimed,
    done,
    fail,
    failed_try,
    finish,
    held_job,
    outcome_of,
    release,
    step,
)
from tallystick.testing.conformance.promises.waiting import awaiting, ending, signal
from tests.store.sql_subject import SqlSubject

WORK, COUNTED, CLOSED = 10**10, 10**9, 10**11


def plant(subject: SqlSubject) -> None:
    """Write the books."""
    about = {"handler": "pay", "payload": "{}", "created_at": 1, "updated_at": 1}
    subject.plant_row("jobs", job_id="j", state="IN_PROGRESS", attempt=2, semaphore=3, **about)
    subject.plant_row("jobs", job_id="over", state="IN_PROGRESS", attempt=1, semaphore=3, **about)
    lease = {"lease_epoch": "e", "lease_expires_at": 1, "lease_owner": "w"}
    subject.plant_row(
        "attempts", job_id="j", attempt=1, status="ABORTED", reason="ERROR", lease_id="l", **lease
    )
    subject.plant_row("attempts", job_id="j", attempt=2, status="IN_PROGRESS", lease_id="l", **lease)
    subject.plant_row(
        "attempts", job_id="over", attempt=1, status="ABORTED", reason="FATAL", lease_id="l", **lease
    )
    for job_id in ("j", "over"):
        step = {"kind": "wait", "state": "IN_PROGRESS", "created_at": 1}
        subject.plant_row("steps", job_id=job_id, name="go", occurrence=1, **step)
    for guid, kind, ledger in (
        ("signal", "signal", 0),
        ("timer", "timer", 0),
        ("worked", "signal", 1 + WORK),
        ("counted", "signal", 1 + WORK + COUNTED),
        ("closer", "signal", 1 + WORK + COUNTED + CLOSED),
    ):
        row = {"name": "go", "occurrence": 1, "kind": kind, "ledger": ledger, "created_at": 1}
        subject.plant_row("messages", guid=guid, job_id="j", **row)
    row = {"name": "go", "occurrence": 1, "kind": "timer", "created_at": 1}
    subject.plant_row("messages", guid="late", job_id="over", acked_at=2, **row)
    subject.plant_row("messages", guid="unread", job_id="over", **row)


def end_over(subject: SqlSubject) -> None:
    """End the job that is over, after its rows were planted."""
    subject.by_hand.execute(
        """UPDATE jobs SET state = 'FAILED_FINAL', completed_at = 2, ready_at = NULL WHERE job_id = 'over'"""
    )


def finish_after_a_wait(held: ClaimedJob, clock: Clock) -> EndJob:
    """Return the end of a job that has waited: it is written by itself, not with others of its kind."""
    return finish(held, clock)._replace(waited=True)


class Columns:
    """What programs read by name is there by that name."""

    def test_a_row_has_the_columns_that_a_program_reads_by_name(self, subject: SqlSubject):
        held_job(subject.store, subject.clock)
        (row,), (book,) = subject.rows("jobs"), subject.rows("job_books")
        assert set(JobRow._fields) <= set(row)
        assert set(Book._fields) <= set(book)


class Guards(Columns):
    """What holds on every store."""

    def test_a_step_takes_no_place_of_an_event(self, subject: SqlSubject):
        """Whoever remembers another end of the chain is refused, also with the last step of a job."""
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, step(held, clock))
        done(store, failed_try(held, clock))
        before = subject.books()
        held.chain.n -= 1
        for bundle in ((step(held, clock, "late"),), (step(held, clock, "late"), finish(held, clock))):
            assert isinstance(outcome_of(store, *bundle), StaleLease)
            assert subject.books() == before
        held.chain.n += 1
        done(store, step(held, clock, "late"))

    @pytest.mark.parametrize("how", [failed_try, release, finish, fail, finish_after_a_wait])
    def test_an_event_takes_no_place_of_a_step(
        self, subject: SqlSubject, how: Callable[[ClaimedJob, Clock], Primitive]
    ):
        """Whoever remembers another end of the chain is refused, whichever statement writes the event."""
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, step(held, clock))
        before = subject.books()
        held.chain.n -= 1
        assert isinstance(outcome_of(store, how(held, clock)), TallyError)
        assert subject.books() == before
        held.chain.n += 1
        done(store, how(held, clock))

    @pytest.mark.parametrize(("table", "taken"), [("steps", 3), ("events", 3), ("events", 2)])
    def test_a_place_of_a_chain_is_taken_once(self, subject: SqlSubject, table: str, taken: int):
        """Not by two steps, not by two events, and not by an event behind a step."""
        held = held_job(subject.store, subject.clock)
        done(subject.store, step(held, subject.clock))
        job_id, n = held.fence.job_id, taken
        before = subject.books()
        fact: dict[str, object] = {"attempt": 1, "prev_hash": b"x", "event_hash": b"y"}
        if table == "events":
            fact |= {"type": "t", "at": 1, "payload": "{}"}
        else:
            fact |= {
                "name": "again",
                "kind": "step",
                "state": "SUCCEEDED",
                "created_at": 1,
                "completed_at": 1,
            }
        with pytest.raises(Exception, match=r"PLACE|UNIQUE|steps_places|events_pkey"):
            subject.plant_row(table, job_id=job_id, n=n, **fact)
        assert subject.books() == before
        subject.plant_row(table, job_id=job_id, n=4, **fact)

    def test_a_wait_that_is_answered_takes_no_place_of_another_fact(self, subject: SqlSubject):
        held = held_job(subject.store, subject.clock)
        row = {"name": "go", "kind": "wait", "state": "IN_PROGRESS", "created_at": 1}
        subject.plant_row("steps", job_id=held.fence.job_id, **row)
        with pytest.raises(Exception, match="PLACE"):
            subject.by_hand.execute("UPDATE steps SET state = 'SUCCEEDED', completed_at = 2, n = 2")
        subject.by_hand.execute("UPDATE steps SET state = 'SUCCEEDED', completed_at = 2, n = 3")

    @pytest.mark.parametrize(
        ("job_id", "status"), [("nobody", "LEASED"), ("nobody", "ABORTED"), ("j", "DONE")]
    )
    def test_an_attempt_begins_at_a_job_that_is_there_and_not_at_its_end(
        self, subject: SqlSubject, job_id: str, status: str
    ):
        plant(subject)
        before = subject.books()
        row: dict[str, object] = {"lease_id": "l", "lease_epoch": "e", "lease_expires_at": 1}
        row |= {"reason": "ERROR"} if status == "ABORTED" else {}
        with pytest.raises(Exception, match=r"ILLEGAL_TRANSITION|attempts_of_a_job"):
            subject.plant_row("attempts", job_id=job_id, attempt=9, status=status, lease_owner="w", **row)
        assert subject.books() == before

    @pytest.mark.parametrize("state", ["PENDING", "SENT", "FAILED_FINAL"])
    def test_a_directive_goes_only_with_its_job(self, subject: SqlSubject, state: str):
        plant(subject)
        row = {"tenant_id": "t", "step_id": "s", "attempt_no": 1, "lease_id": "l", "topic": "x"}
        row |= {"payload": "{}", "created_at": 1, "updated_at": 1}
        subject.plant_row("outbox", outbox_id="o", job_id="over", state="PENDING", **row)
        sent = ", sent_at = 1" if state == "SENT" else ""
        if state != "PENDING":
            subject.by_hand.execute(f"UPDATE outbox SET state = '{state}'{sent}")
        with pytest.raises(Exception, match="DELETE"):
            subject.by_hand.execute("DELETE FROM outbox")
        assert len(subject.rows("outbox")) == 1
        end_over(subject)
        subject.by_hand.execute("UPDATE jobs SET pruned_at = 3 WHERE job_id = 'over'")
        subject.by_hand.execute("DELETE FROM outbox")
        assert subject.rows("outbox") == []

    @pytest.mark.parametrize("table", ["jobs", "attempts", "steps", "messages"])
    def test_what_has_ended_is_deleted_by_nobody_but_retention(self, subject: SqlSubject, table: str):
        plant(subject)
        end_over(subject)
        before = subject.books()
        with pytest.raises(Exception, match="DELETE"):
            subject.by_hand.execute(f"DELETE FROM {table} WHERE job_id = 'over'")
        assert subject.books() == before

    def test_books_that_do_not_say_what_they_must_refuse_the_whole_bundle(self, subject: SqlSubject):
        """The message that drives a segment is acknowledged behind its back: nothing can be built on that."""
        store = subject.store
        held = held_job(store, subject.clock)
        done(store, awaiting(subject, held))
        done(store, signal(held.fence.job_id))
        (woken,) = claimed(store, claim())
        subject.by_hand.execute("UPDATE messages SET acked_at = 1")
        before = subject.books()
        assert isinstance(outcome_of(store, ending(subject, woken)), InvariantBroken)
        assert subject.books() == before
