"""The PostgreSQL store against the model, in every order that chance finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tallystick.testing.conformance.machine import StoreMachine
from tests.postgres.databases import SCHEMA, lent_database
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject


@contextmanager
def opening(server: Server) -> Iterator[PostgresSubject]:
    with (
        lent_database(server) as database,
        closing(PostgresSubject(server, database=database, schema=SCHEMA)) as subject,
    ):
        yield subject


@pytest.mark.timeout(300)
def test_the_store_does_what_the_model_says(server: Server) -> None:
    class Machine(StoreMachine):
        opening = staticmethod(partial(opening, server))

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=12, stateful_step_count=20, deadline=None)
    )
