"""Random walks of the model, played on a real store: every outcome and every row is the same."""

from __future__ import annotations

from collections.abc import Iterator
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
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

TRACES = 50
"""How many walks of each world; together more than a thousand."""


class SqliteSubject:
    """A store and a window into its rows. Another store needs the same names, and SQL with `?`."""

    look_every = 1

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
    """The same on a server: one schema for all walks of a world. Looking is dear there, and done less."""

    look_every = 6

    def __init__(self, server: Server) -> None:
        self.clock = VirtualClock()
        schema = fresh_schema()
        self.store = PostgresStore(server.url(schema=schema), self.clock)
        self._window = psycopg.connect(server.dsn, autocommit=True, options=f"-c search_path={schema}")

    def read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._window.execute(statement.replace("?", "%s"), parameters).fetchall()

    def write(self, statement: str) -> None:
        self._window.execute(statement)

    def close(self) -> None:
        self._window.close()
        self.store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def subject(request, tmp_path) -> Iterator[SqliteSubject | PostgresSubject]:
    if request.param == "sqlite":
        made: SqliteSubject | PostgresSubject = SqliteSubject(tmp_path / "model.db")
    else:
        made = PostgresSubject(request.getfixturevalue("server"))
    yield made
    made.close()


def is_stored(shape: object) -> bool:
    """Tell whether a store has everything that this world speaks of."""
    return isinstance(shape, Shape) and "effect" not in {op[0] for op in shape.script}


ALL = SMALL | {name: shape for name, (_, shape) in LARGE.items()}
# A store takes messages in the order of their arrival; where they pass each other, only the rules are tested.
WORLDS = {name: shape._replace(skew=False) for name, shape in ALL.items() if is_stored(shape)}  # type: ignore[call-arg]  # both kinds of shapes have it

FORKS = {name: shape for name, shape in ALL.items() if isinstance(shape, forks.Shape)}


@pytest.mark.parametrize("name", WORLDS)
def test_a_walk_of_the_model_is_a_history_of_the_store(subject, name):
    model = model_of(WORLDS[name])
    for seed in range(TRACES):
        steps = walk(model, seed)
        try:
            Replay(subject, model, f"walk-{seed}").play(steps, subject.look_every)
        except Exception as error:
            raise Differs(f"world {name!r}, seed {seed}: {error}\n{told(steps)}") from error


@pytest.mark.parametrize("name", FORKS)
def test_a_walk_of_forks_is_a_history_of_the_store(subject, name):
    model = model_of(FORKS[name])
    for seed in range(TRACES):
        steps = walk(model, seed)
        try:
            ReplayForks(subject, model, f"walk-{seed}").play(steps, subject.look_every)
        except Exception as error:
            raise Differs(f"world {name!r}, seed {seed}: {error}\n{told(steps)}") from error


def test_the_worlds_give_a_thousand_walks():
    assert len(WORLDS) * TRACES >= 1_000


def test_a_store_that_differs_from_the_model_is_noticed(subject):
    """Here it is the model that is wrong: it forgets to acknowledge the timer that lost."""
    forgetful = next(mutant for mutant in known() if mutant.name.startswith("_loser:"))
    model = model_of(WORLDS["timeout"], Rules(load(forgetful.changed())))

    def play_all() -> None:
        for seed in range(100):
            Replay(subject, model, f"walk-{seed}").play(walk(model, seed))

    with pytest.raises(Differs, match="move"):
        play_all()
