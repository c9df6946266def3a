"""One real server for the whole run, a database with empty tables for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.databases import SCHEMA, lent_database
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject


@pytest.fixture
def subject(server: Server) -> Iterator[PostgresSubject]:
    with lent_database(server) as database:
        made = PostgresSubject(server, database=database, schema=SCHEMA)
        yield made
        made.close()
