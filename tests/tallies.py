"""Fixtures: a Tally on each store, empty, with a clock that the test owns where it asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.store.postgres import statements as postgres_statements
from tallystick.store.postgres.server.wire import Wire
from tallystick.store.sqlite import statements as sqlite_statements
from tallystick.testing.stepping import SteppedWorker
from tests.postgres.databases import SCHEMA, lent_database

__all__ = ["app", "clock", "hand", "put", "statements", "timed", "url"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/shop.db"
        return
    server = request.getfixturevalue("server")
    with lent_database(server) as database:
        # The user's tables lie in the schema of ours.
        yield server.url(database=database, schema=SCHEMA, options=f"-c%20search_path%3D{SCHEMA}")


@pytest.fixture
def put(url):
    """The statement by which a test's transaction writes one value, in the dialect of the store."""
    return "insert into effects values (?)" if url.startswith("sqlite") else "insert into effects values (%s)"


@pytest.fixture
def app(url):
    tally = Tally(url)
    yield tally
    tally.close()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def timed(url, clock):
    tally = Tally(url, clock=clock)
    yield tally
    tally.close()


@pytest.fixture
def hand(timed, clock):
    return SteppedWorker(timed, clock)


@pytest.fixture
def statements(timed, url, monkeypatch):
    """The name of every statement that is run for the store of `timed`, as it is run; else its text."""
    seen: list[str] = []
    kind = sqlite_statements if url.startswith("sqlite") else postgres_statements
    store = Path(kind.__file__).parents[1]
    files = [*store.glob("sql/statements/*.sql"), *Path(kind.__file__).with_name("statements").glob("*.sql")]
    names = {kind.sql(file.stem): file.stem for file in files}
    if kind is sqlite_statements:
        timed.runtime().store._writer.set_profile(lambda text, _ns: seen.append(names.get(text, text)))
        return seen
    execute = Wire.execute

    def noted(wire, query, *arguments):
        seen.append(names.get(query, str(query)))
        return execute(wire, query, *arguments)

    monkeypatch.setattr(Wire, "execute", noted)
    return seen
