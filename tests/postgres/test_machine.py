"""The PostgreSQL store against the model, in every order that chance finds."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tallystick.testing.conformance.machine import StoreMachine
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject


@pytest.mark.timeout(300)
def test_the_store_does_what_the_model_says(server: Server) -> None:
    class Machine(StoreMachine):
        opening = staticmethod(lambda: closing(PostgresSubject(server)))

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=12, stateful_step_count=20, deadline=None)
    )
