"""A Tally on each store, empty, with a clock that the test owns where it asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.store.postgres import statements as postgres_statements
from tallystick.store.postgres.wire import Wire
from tallystick.store.sqlite import statements as sqlite_statements
from tests.app.by_hand import Hand
from tests.postgres.subject import fresh_schema

# Programs that tests start in processes of their own.
collect_ignore = ["programs"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    schema = fresh_schema()
    # The user's tables lie in a schema of the test's own too.
    path = f"-c%20search_path%3D{schema}"
    return request.getfixturevalue("server").url(schema=schema, options=path)


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
    return Hand(timed, clock)


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
