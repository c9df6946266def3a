"""The PostgreSQL store keeps every promise of the store protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.testing.conformance.suite import StoreConformance
from tests.postgres.databases import SCHEMA, copied_database
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject


@pytest.fixture
def subject(server: Server) -> Iterator[PostgresSubject]:
    with copied_database(server) as database:
        made = PostgresSubject(server, database=database, schema=SCHEMA)
        yield made
        made.close()


class TestPostgres(StoreConformance):
    """Over a real server, with real processes."""
