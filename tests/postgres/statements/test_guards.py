"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

import psycopg
import pytest

from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.statements import sql
from tests.postgres.statements.moves import move_of
from tests.postgres.subject import PostgresSubject
from tests.store.guard_cases import COUNTED, WORK, Guards, end_over, plant

JOB = {
    "job_id": "j",
    "before": 1,
    "hit": False,
    "state": "IN_PROGRESS",
    "attempt": 2,
    "dimension": 0,
    "semaphore": 3,
}
JOB |= {"root_ledger": 0, "start_ledger": 0, "rev": 2}
MESSAGE = {"guid": "worked", "before": 1 + WORK, "job_id": "j", "dimension": 0, "name": "go", "occurrence": 1}
MESSAGE |= {
    "kind": "signal",
    "ledger": 1 + WORK + COUNTED,
    "redeliveries": 0,
    "created_at": 1,
    "arrived": 1,
    "acked_at": 9,
}
WAIT = {
    "job_id": "j",
    "dimension": 0,
    "name": "go",
    "occurrence": 1,
    "before": 1,
    "hit": False,
    "kind": "wait",
}
WAIT |= {"state": "IN_PROGRESS", "ledger": 1, "rev": 2, "attempt": 2}


def moved(subject: PostgresSubject, *changes: tuple[int, dict[str, object]]) -> None:
    """Move a job, its wait and a message of it, with these changes to what is asked for."""
    rows = [dict(JOB), dict(WAIT), dict(MESSAGE)]
    for which, change in changes:
        rows[which] |= change
    settings = parse_address(subject.url).settings
    with psycopg.connect(subject.dsn, options=settings, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(sql("move"), move_of(*rows))


class TestPostgres(Guards):
    """On a real server."""

    @pytest.mark.parametrize(
        "stray",
        [
            (0, {"before": 2}),
            (0, {"job_id": "over"}),
            (0, {"hit": True}),
            (1, {"before": 2}),
            (1, {"name": "no"}),
            (2, {"before": 1}),
            (2, {"job_id": "over"}),
            (2, {"guid": "late", "before": 0}),
        ],
    )
    def test_what_is_not_as_it_was_looked_at_moves_nothing(self, subject: PostgresSubject, stray):
        plant(subject)
        end_over(subject)
        before = subject.books()
        with pytest.raises(psycopg.Error, match=r"MARKER|FINAL"):
            moved(subject, stray)
        assert subject.books() == before
        moved(subject)
        assert subject.books() != before
