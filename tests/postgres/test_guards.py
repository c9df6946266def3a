"""A stray statement changes nothing, and its caller is told."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg

from tallystick.store.postgres.address import parse_address
from tallystick.store.postgres.writing import PostgresWriting, Times
from tests.postgres.subject import PostgresSubject
from tests.store.guard_cases import Guards


class TestPostgres(Guards):
    """On a real server."""

    @contextmanager
    def writing(self, subject: PostgresSubject):
        settings = parse_address(subject.url).settings
        with psycopg.connect(subject.dsn, options=settings, cursor_factory=psycopg.RawCursor) as connection:
            yield PostgresWriting(connection, Times())
