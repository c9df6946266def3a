"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

from contextlib import contextmanager

import apsw
import pytest

from tallystick.errors import InvariantBroken
from tallystick.store.refusals import Refused
from tallystick.store.sqlite.writer import Batch
from tallystick.store.writing import insist
from tallystick.testing.conformance.drafts import claim, claimed, done, held_job, outcome_of
from tallystick.testing.conformance.waiting import awaiting, books, ending, signal
from tests.store.guard_cases import GUARDS, WORK, plant
from tests.store.sqlite_subject import SqliteSubject

OVER = """UPDATE jobs SET state = 'FAILED_FINAL', completed_at = 2, ready_at = NULL WHERE job_id = 'over'"""


@contextmanager
def writing(subject: SqliteSubject):
    with subject.by_hand:
        yield Batch(subject.by_hand, subject.clock)


@pytest.mark.parametrize("name", GUARDS)
def test_a_statement_changes_its_one_row_and_a_stray_changes_none(subject: SqliteSubject, name: str):
    plant(subject)
    subject.by_hand.execute(OVER)
    with writing(subject) as batch:
        for stray in GUARDS[name].strays:
            assert batch.changed(name, stray) == 0, stray
            with pytest.raises(Refused) as refused:
                insist(batch, name, stray)
            assert isinstance(refused.value.error, InvariantBroken)
        insist(batch, name, GUARDS[name].right)


def test_books_that_do_not_say_what_they_must_refuse_the_whole_bundle(subject: SqliteSubject):
    """The message that drives a segment is acknowledged behind its back: nothing can be built on that."""
    store = subject.store
    held = held_job(store, subject.clock)
    done(store, awaiting(subject, held))
    done(store, signal(subject, held.fence.job_id))
    (woken,) = claimed(store, claim())
    subject.by_hand.execute("UPDATE messages SET acked_at = 1")
    before = books(subject)
    assert isinstance(outcome_of(store, ending(subject, woken)), InvariantBroken)
    assert books(subject) == before


@pytest.mark.parametrize("place", [("over", "", 0, "unread"), ("j", "go", 1, "worked"), ("j", "", 0, "late")])
def test_a_stray_closing_is_refused_by_the_database_itself(subject: SqliteSubject, place):
    """Of a job that has ended, of an activity that is no group, and by a message of another job."""
    plant(subject)
    subject.by_hand.execute("UPDATE messages SET ledger = ? WHERE guid = 'unread'", (WORK,))
    subject.by_hand.execute(OVER)
    before = books(subject)
    job_id, name, occurrence, guid = place
    with pytest.raises(apsw.ConstraintError, match="MARKER"):
        subject.by_hand.execute(
            "INSERT INTO closings VALUES (?, 0, ?, ?, ?, -1, 0, 0)", (job_id, name, occurrence, guid)
        )
    assert books(subject) == before


@pytest.mark.parametrize("place", [("j", "go", 1), ("j", "no", 1), ("over", "go", 1)])
def test_a_child_that_ends_in_no_open_group_is_refused_by_the_database_itself(subject: SqliteSubject, place):
    plant(subject)
    before = books(subject)
    with pytest.raises(apsw.ConstraintError, match="MARKER"):
        subject.by_hand.execute(
            "INSERT INTO child_ends VALUES ('child:c', ?, 0, ?, ?, 'SUCCEEDED', 0, 1, 1, 0, NULL)", place
        )
    assert books(subject) == before
