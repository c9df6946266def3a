"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

from contextlib import contextmanager

import apsw
import pytest

from tallystick.store.sqlite.file_clock import FileClock
from tallystick.store.sqlite.writer import Batch
from tallystick.testing.conformance.drafts import check_chain, done, submission
from tallystick.testing.conformance.waiting import books
from tests.store.guard_cases import WORK, Guards, end_over, plant
from tests.store.sqlite_subject import SqliteSubject


class TestSqlite(Guards):
    """On a real file."""

    @contextmanager
    def writing(self, subject: SqliteSubject):
        with subject.by_hand:
            yield Batch(subject.by_hand, FileClock(subject.clock).now(subject.by_hand))


@pytest.mark.parametrize("place", [("over", "", 0, "unread"), ("j", "go", 1, "worked"), ("j", "", 0, "late")])
def test_a_stray_closing_is_refused_by_the_database_itself(subject: SqliteSubject, place):
    """Of a job that has ended, of an activity that is no group, and by a message of another job."""
    plant(subject)
    subject.by_hand.execute("UPDATE messages SET ledger = ? WHERE guid = 'unread'", (WORK,))
    end_over(subject)
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


@pytest.mark.parametrize("place", [0, 4, 7, 8, 19])
def test_a_birth_that_is_refused_among_many_leaves_the_others_whole(subject: SqliteSubject, place: int):
    """Births go eight a statement and raise FAIL: those before a refused one must not stay half written."""
    store, clock = subject.store, subject.clock
    first = submission(clock)
    done(store, first)
    wishes = [submission(clock) for _ in range(20)]
    wishes[place] = submission(clock, first.job.job_id)
    outcomes = store.apply([(wish,) for wish in wishes])
    assert [index for index, one in enumerate(outcomes) if one is not None] == [place]
    assert store.counts() == {"QUEUED": 20}
    for wish in wishes:
        history = store.history(wish.job.job_id)
        assert len(history) == 1
        check_chain(history)
