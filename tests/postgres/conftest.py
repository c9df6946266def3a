"""One real server for the whole run, a schema of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject


@pytest.fixture
def subject(server: Server) -> Iterator[PostgresSubject]:
    made = PostgresSubject(server)
    yield made
    made.close()
