"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from tallystick.errors import InvariantBroken
from tallystick.store.postgres.address import parse_address
from tallystick.store.postgres.writing import PostgresWriting, Times
from tallystick.store.refusals import Refused
from tallystick.store.writing import insist
from tallystick.testing.conformance.drafts import claim, claimed, done, held_job, outcome_of
from tallystick.testing.conformance.waiting import awaiting, books, ending, signal
from tests.postgres.subject import PostgresSubject
from tests.store.guard_cases import GUARDS, plant

OVER = """UPDATE jobs SET state = 'FAILED_FINAL', completed_at = 2, ready_at = NULL WHERE job_id = 'over'"""


@contextmanager
def writing(subject: PostgresSubject):
    settings = parse_address(subject.url).settings
    with psycopg.connect(subject.dsn, options=settings, cursor_factory=psycopg.RawCursor) as connection:
        yield PostgresWriting(connection, Times())


@pytest.mark.parametrize("name", GUARDS)
def test_a_statement_changes_its_one_row_and_a_stray_changes_none(subject: PostgresSubject, name: str):
    plant(subject)
    subject.by_hand.execute(OVER)
    with writing(subject) as batch:
        for stray in GUARDS[name].strays:
            assert batch.changed(name, stray) == 0, stray
            with pytest.raises(Refused) as refused:
                insist(batch, name, stray)
            assert isinstance(refused.value.error, InvariantBroken)
        insist(batch, name, GUARDS[name].right)


def test_books_that_do_not_say_what_they_must_refuse_the_whole_bundle(subject: PostgresSubject):
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
