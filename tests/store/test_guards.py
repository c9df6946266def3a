"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

import apsw
import pytest

from tallystick.store.sqlite.file.clock import FileClock
from tallystick.store.sqlite.statements import sql
from tallystick.store.sqlite.writer import SqliteBatch
from tallystick.testing.conformance.drafts import check_chain, done, submission
from tests.store.guard_cases import COUNTED, WORK, Guards, end_over, plant
from tests.store.sqlite_subject import SqliteSubject

# The parameters that change one row, and those of strays, each wrong in one place.
_JOB = ("IN_PROGRESS", 2, 0, None, None, 3, 0, 0, None, None, None, 2)
_NO_MORE = (*[None] * 9, 9)
_MESSAGE = (0, "n", 1, "signal", None, None, 1, 0, 0, 0, None, 0)
_ATTEMPT = ("IN_PROGRESS", "ABORTED", "ERROR", 0, 0, 9, "e", 9)
_ACTIVITY = ("IN_PROGRESS", 1, 2, 2, None, None, None, None, None, None)
GUARDS = {
    "move_job": (
        ("j", *_JOB, 1, *_NO_MORE),
        [("j", *_JOB, 2, *_NO_MORE), ("over", *_JOB, 9, *_NO_MORE)],
    ),
    "move_message": (
        ("signal", "j", *_MESSAGE),
        [("worked", "j", *_MESSAGE), ("signal", "over", *_MESSAGE), ("late", "over", *_MESSAGE)],
    ),
    "move_activity": (
        ("j", 0, "go", 1, 1, *_ACTIVITY),
        [("j", 0, "go", 1, 2, *_ACTIVITY), ("j", 0, "no", 1, 1, *_ACTIVITY)],
    ),
    "move_attempts": (
        ("j", 2, "l", *_ATTEMPT),
        [("j", 1, "l", *_ATTEMPT), ("j", 2, "m", *_ATTEMPT), ("over", 1, "l", *_ATTEMPT)],
    ),
}


class TestSqlite(Guards):
    """On a real file."""

    @pytest.mark.parametrize("name", GUARDS)
    def test_a_statement_changes_its_one_row_and_a_stray_changes_none(
        self, subject: SqliteSubject, name: str
    ):
        plant(subject)
        end_over(subject)
        right, strays = GUARDS[name]
        with subject.by_hand:
            batch = SqliteBatch(subject.by_hand, FileClock(subject.clock).now(subject.by_hand))
            assert [batch.changed(name, stray) for stray in strays] == [0] * len(strays)  # type: ignore[attr-defined]  # a list of parameters
            assert batch.changed(name, right) == 1


@pytest.mark.parametrize(
    "stray",
    [
        ("over", 1, -1, 0, 0, "unread", 0, 1, 2),
        ("j", 2, -1, 0, 0, "worked", 1 + WORK, 1 + WORK + COUNTED, 2),
        ("j", 1, -1, 0, 1, "worked", 1 + WORK, 1 + WORK + COUNTED, 2),
        ("j", 1, -1, 0, 0, "worked", 1, 1 + WORK + COUNTED, 2),
        ("j", 1, -1, 0, 0, "late", 0, 1, 2),
    ],
    ids=["an ended job", "another revision", "no hit", "other digits", "another's message"],
)
def test_a_stray_step_2_is_refused_by_the_database_itself(subject: SqliteSubject, stray):
    plant(subject)
    end_over(subject)
    before = subject.books()
    with pytest.raises(apsw.ConstraintError, match="MARKER"):
        subject.by_hand.execute(
            "INSERT INTO semaphore_moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 'go', 1, 0, NULL)", stray
        )
    assert subject.books() == before


@pytest.mark.parametrize("place", [("j", 0, "go", 1), ("j", 0, "no", 1), ("over", 0, "go", 1)])
def test_a_child_is_counted_by_no_row_but_an_open_group(subject: SqliteSubject, place):
    plant(subject)
    before = subject.books()
    subject.by_hand.execute(sql("move_groups"), (*place, 1, 1, 0, 0, 2, False))
    assert subject.books() == before


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
