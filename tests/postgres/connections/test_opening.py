"""How a store is opened: behind a pooler, and while the server is away for a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tallystick import Tally
from tallystick.clock import SystemClock
from tallystick.errors import BadInput, StoreError
from tallystick.store.postgres.store import PostgresStore
from tests.postgres.doorman import (
    Doorman,
    Plan,
    as_pgbouncer,
    as_pgbouncer_that_ignores,
    hang_up,
    let_in,
    refuse,
)
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

Hire = Callable[..., Doorman]
POOLER = pytest.mark.parametrize("pooler", [as_pgbouncer, as_pgbouncer_that_ignores])


@pytest.fixture
def hire(server: Server) -> Iterator[Hire]:
    hired: list[Doorman] = []

    def doorman(always: Plan = let_in, plans: tuple[Plan, ...] = ()) -> Doorman:
        hired.append(Doorman(server, always, plans))
        return hired[-1]

    yield doorman
    for one in hired:
        one.close()


def works(url: str) -> bool:
    app = Tally(url)

    @app.workflow
    def flow(n: int) -> int:
        return n

    with app.worker():
        result = flow.submit(1).result(20)
    app.close()
    return result == 1


@POOLER
@pytest.mark.parametrize("there", [True, False], ids=["with books", "without"])
def test_a_pooler_that_the_address_does_not_name_is_found_out_at_once(
    server: Server, hire: Hire, pooler: Plan, there: bool
) -> None:
    schema = fresh_schema()
    if there:
        PostgresStore(server.url(schema=schema), SystemClock()).close()
    doorman = hire(pooler)
    with pytest.raises(BadInput, match="add pooler=transaction to the address"):
        PostgresStore(server.url(port=doorman.port, schema=schema), SystemClock())
    assert doorman.came == 1


@POOLER
def test_a_pooler_that_the_address_names_is_worked_through(server: Server, hire: Hire, pooler: Plan) -> None:
    assert works(server.url(port=hire(pooler).port, schema=fresh_schema(), pooler="transaction"))


@pytest.mark.parametrize(
    "away",
    [
        refuse("57P01", "terminating connection due to administrator command"),
        refuse("57P03", "the database system is starting up"),
        refuse("57P03", "the database system is in recovery mode"),
        hang_up,
    ],
    ids=["terminated", "starting", "recovering", "silent"],
)
def test_a_worker_starts_while_its_server_is_away_for_a_moment(
    server: Server, hire: Hire, away: Plan
) -> None:
    assert works(server.url(port=hire(plans=(away,) * 3).port, schema=fresh_schema()))


def test_a_session_that_is_ended_while_the_books_are_made_is_begun_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, ended = fresh_schema(), []
    execute = psycopg.Connection.execute

    def end_first(connection, query, *arguments, **options):
        if b"CREATE TABLE jobs" in (query if isinstance(query, bytes) else b"") and not ended:
            ended.append(connection.info.backend_pid)
            with psycopg.connect(server.dsn, autocommit=True) as other:
                other.execute(f"SELECT pg_terminate_backend({ended[0]}, 5000)")
        return execute(connection, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", end_first)
    store = PostgresStore(server.url(schema=schema), SystemClock())
    assert (len(ended), store.counts()) == (1, {})
    store.close()


def test_a_server_that_says_no_is_asked_once(server: Server, hire: Hire) -> None:
    doorman = hire(refuse("28P01", 'password authentication failed for user "tally"'))
    with pytest.raises(StoreError, match="password authentication failed"):
        PostgresStore(server.url(port=doorman.port), SystemClock())
    assert doorman.came == 1
