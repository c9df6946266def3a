"""A submission inside a transaction that the user began by other means."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from tallystick import Tally
from tallystick.errors import BadInput, IdempotencyConflict, NotFound
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema


@pytest.fixture
def app(server: Server):
    tally = Tally(server.url(schema=fresh_schema()))
    yield tally
    tally.close()


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow(n: int) -> int:
        return n + 1

    return flow


def test_a_job_submitted_on_a_psycopg_connection_is_there_if_the_user_commits(app, flow, server) -> None:
    with psycopg.connect(server.dsn, row_factory=dict_row) as connection:
        connection.execute("CREATE TEMP TABLE orders (n INTEGER)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (1)")
        kept = flow.opts(within=connection).submit(1)
        with pytest.raises(NotFound):
            kept.row()
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (2)")
        dropped = flow.opts(within=connection).submit(2)
        connection.rollback()
        assert connection.execute("SELECT n FROM orders").fetchall() == [{"n": 1}]
        assert connection.execute("SHOW search_path").fetchone() == {"search_path": '"$user", public'}
    with pytest.raises(NotFound):
        dropped.row()
    with app.worker():
        assert kept.result(20) == 2


def test_a_job_submitted_in_an_sqlalchemy_session_shares_its_fate(app, flow, server) -> None:
    engine = sqlalchemy.create_engine(server.dsn.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        session.execute(sqlalchemy.text("SELECT 1"))
        kept = flow.opts(within=session).submit(3)
        session.commit()
        dropped = flow.opts(within=session).submit(4)
        session.rollback()
    with engine.begin() as connection:
        also_kept = flow.opts(within=connection).submit(5)
    engine.dispose()
    assert [kept.state(), also_kept.state()] == ["QUEUED", "QUEUED"]
    with pytest.raises(NotFound):
        dropped.row()


def test_a_key_is_honoured_inside_a_users_transaction_too(app, flow, server) -> None:
    first = flow.opts(idempotency_key="k").submit(1)
    with psycopg.connect(server.dsn) as connection:
        again = flow.opts(idempotency_key="k", within=connection).submit(1)
        assert (again.id, again.created) == (first.id, False)
        with pytest.raises(IdempotencyConflict):
            flow.opts(idempotency_key="k", within=connection).submit(2)
        assert connection.execute("SELECT 1").fetchone() == (1,), "the user's transaction goes on"


def test_what_cannot_carry_a_transaction_is_refused(app, flow, server) -> None:
    with (
        psycopg.connect(server.dsn, autocommit=True) as connection,
        pytest.raises(BadInput, match="begin a transaction"),
    ):
        flow.opts(within=connection).submit(1)
    for nothing in (object(), "postgresql://", 7):
        with pytest.raises(BadInput, match="within="):
            flow.opts(within=nothing).submit(1)


def test_a_worker_hears_of_a_job_that_a_user_committed(app, flow, server) -> None:
    with app.worker(), psycopg.connect(server.dsn) as connection:
        assert flow.submit(1).result(20) == 2
        job = flow.opts(within=connection).submit(5)
        connection.commit()
        assert job.result(10) == 6


def test_inside_a_transaction_names_mean_what_they_mean_to_the_user(app, server) -> None:
    """His tables come first, under his own search path; ours can be read where his do not hide them."""
    with app.transaction() as db:
        db.execute("CREATE TEMP TABLE jobs (mine TEXT)")
        db.execute("INSERT INTO jobs VALUES ('a job of my own')")
        assert db.execute("SELECT mine FROM jobs") == [("a job of my own",)]
        assert db.execute("SELECT count(*) FROM stale_reports") == [(0,)]
        assert db.execute("SELECT current_schema()") == [("public",)]


@pytest.fixture
def elsewhere(server: Server, app: Tally):
    """Another database of the same server, with books of its own under the same name."""
    name = fresh_schema()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    dsn = server.dsn.rpartition("/")[0] + f"/{name}"
    schema = app.url.rpartition("schema=")[2]
    other = Tally(f"{dsn}?schema={schema}")
    other.runtime()
    other.close()
    return dsn


def test_a_transaction_on_another_database_is_refused(flow, elsewhere: str) -> None:
    """The tables are there, under the same names; no worker of ours would ever look into them."""
    with psycopg.connect(elsewhere) as connection:
        with pytest.raises(BadInput, match="other books"):
            flow.opts(within=connection).submit(1)
        assert connection.execute("SELECT 1").fetchone() == (1,), "the user's transaction goes on"
    engine = sqlalchemy.create_engine(elsewhere.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session, pytest.raises(BadInput, match="other books"):
        flow.opts(within=session).submit(1)
    engine.dispose()
