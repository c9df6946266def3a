"""What a check says of transactions that stay open over the books."""

from __future__ import annotations

import psycopg

from tallystick import Tally
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject


def test_a_transaction_that_has_written_to_the_books_and_stays_open_is_named(
    subject: PostgresSubject,
) -> None:
    app = Tally(subject.url)

    @app.workflow
    def flow() -> int:
        return 1

    def warned() -> bool:
        warnings = app.runtime().store.inspect().health().warnings
        return any(f"pid {connection.info.backend_pid}," in text and "open for" in text for text in warnings)

    with psycopg.connect(subject.dsn) as connection:
        flow.opts(within=connection).submit()
        wait_until(warned, "a second")
        connection.rollback()
        assert not warned()
    app.close()
