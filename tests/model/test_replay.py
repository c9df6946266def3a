"""Random walks of the model, played on a real store: every outcome and every row is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tallystick.clock import VirtualClock
from tallystick.store.postgres.store import PostgresStore
from tallystick.store.sqlite.store import SqliteStore
from tests.model import forks
from tests.model.configurations import LARGE, SMALL, model_of
from tests.model.mutants import known
from tests.model.replay import Differs, Replay, told, walk
from tests.model.replay_forks import ReplayForks
from tests.model.rules import Rules, load
from tests.model.world import Shape
from tests.postgres.databases import SCHEMA, lent_database
from tests.postgres.server import Server

MANY = 400
"""How many walks of each world `make test-long` plays."""


class SqliteSubject:
    """A store and a window into its rows. Another store needs the same names, and SQL with `?`."""

    look_every = 1
    walks = 24

    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock()
        self.store = SqliteStore(path, self.clock, synchronous="OFF")
        self._window = apsw.Connection(str(path))

    def read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return list(self._window.execute(statement, parameters))

    def write(self, statement: str) -> None:
        self._window.execute(statement)

    def close(self) -> None:
        self._window.close()
        self.store.close()


class PostgresSubject:
    """The same on a server: one schema for all walks of a world. All is dear there, and done less."""

    look_every = 6
    walks = 6

    def __init__(self, server: Server, database: str) -> None:
        self.clock = VirtualClock()
        self.store = PostgresStore(server.url(database=database, schema=SCHEMA), self.clock)
        window = server.url(database=database, options=f"-csearch_path%3D{SCHEMA}")
        self._window = psycopg.connect(window, autocommit=True)

    def read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._window.execute(statement.replace("?", "%s"), parameters).fetchall()

    def write(self, statement: str) -> None:
        self._window.execute(statement)

    def close(self) -> None:
        self._window.close()
        self.store.close()


AnySubject = SqliteSubject | PostgresSubject


@pytest.fixture(params=["sqlite", "postgres"])
def subject(request, tmp_path) -> Iterator[AnySubject]:
    if request.param == "sqlite":
        with closing(SqliteSubject(tmp_path / "model.db")) as file:
            yield file
        return
    server = request.getfixturevalue("server")
    with lent_database(server) as database, closing(PostgresSubject(server, database)) as made:
        yield made


def is_stored(shape: object) -> bool:
    """Tell whether a store has everything that this world speaks of."""
    return isinstance(shape, Shape) and all(op[0] != "effect" for op in shape.script)


ALL = SMALL | {name: shape for name, (_, shape) in LARGE.items()}
# A store takes messages in the order of their arrival; where they pass each other, only the rules are tested.
WORLDS = {name: shape._replace(skew=False) for name, shape in ALL.items() if is_stored(shape)}  # type: ignore[call-arg]  # both kinds of shapes have it

FORKS = {name: shape for name, shape in ALL.items() if isinstance(shape, forks.Shape)}


@pytest.mark.parametrize("name", WORLDS)
def test_a_walk_of_the_model_is_a_history_of_the_store(subject, name):
    play(subject, name, Replay, range(subject.walks))


@pytest.mark.parametrize("name", FORKS)
def test_a_walk_of_forks_is_a_history_of_the_store(subject, name):
    play(subject, name, ReplayForks, range(subject.walks))


@pytest.mark.long
@pytest.mark.parametrize("name", WORLDS | FORKS)
def test_many_more_walks_are(subject, name):
    play(subject, name, ReplayForks if name in FORKS else Replay, range(subject.walks, MANY))


def play(subject: AnySubject, name: str, replay: type[Replay | ReplayForks], seeds: range) -> None:
    """Walk through a world once for each seed, and play each walk on the store."""
    model = model_of((WORLDS | FORKS)[name])
    for seed in seeds:
        steps = walk(model, seed)
        try:
            replay(subject, model, f"walk-{seed}").play(steps, subject.look_every)
        except Exception as error:
            raise Differs(f"world {name!r}, seed {seed}: {error}\n{told(steps)}") from error


def test_the_worlds_give_a_thousand_walks():
    assert len(WORLDS) * SqliteSubject.walks >= 1_000


def test_a_store_that_differs_from_the_model_is_noticed(subject):
    """Here it is the model that is wrong: it forgets to acknowledge the timer that lost."""
    forgetful = next(mutant for mutant in known() if mutant.name.startswith("_loser:"))
    model = model_of(WORLDS["timeout"], Rules(load(forgetful.changed())))

    def play_all() -> None:
        for seed in range(100):
            Replay(subject, model, f"walk-{seed}").play(walk(model, seed))

    with pytest.raises(Differs, match="move"):
        play_all()
