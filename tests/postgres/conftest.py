"""One real server for the whole run, a schema of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.server import Server, shared_server
from tests.postgres.subject import PostgresSubject


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Server:
    base = tmp_path_factory.getbasetemp()
    return shared_server(base if worker_id == "master" else base.parent)


@pytest.fixture
def subject(server: Server) -> Iterator[PostgresSubject]:
    made = PostgresSubject(server)
    yield made
    made.close()
