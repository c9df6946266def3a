"""Every finding has its test in `tests/README.md`, and what pages say of counts is what the code has."""

from __future__ import annotations

import re

import pytest

from tallystick import crash
from tallystick.store.postgres import store as _postgres  # noqa: F401 (its crash points are to be known)
from tallystick.store.sqlite import store as _sqlite  # noqa: F401 (as above)
from tests.crash.sweep.controls import controls_of
from tests.crash.sweep.sweep import is_swept
from tests.model.test_replay import FORKS, WORLDS, PostgresSubject, SqliteSubject
from tests.tidy.tree import ROOT

PAGE = ROOT / "tests" / "README.md"
NAMES = [
    *(f"E{number}" for number in range(1, 20)),
    *(f"A{number}" for number in range(1, 17)),
    *(f"B{number}" for number in range(1, 8)),
]
ROWS = dict(re.findall(r"^\| ([EAB]\d+) \| .* \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def test_every_finding_is_listed_once():
    assert re.findall(r"^\| ([EAB]\d+) ", PAGE.read_text("utf-8"), re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_is_guarded_by_a_test_that_is_there(name: str):
    guards = re.findall(r"`([\w/.]+\.py)(?:::(\w+))?`", ROWS[name])
    assert guards
    for path, test in guards:
        assert f"def {test}" in (ROOT / path).read_text("utf-8"), f"{path} has no {test}"


@pytest.mark.parametrize("store", STORES)
def test_the_page_says_how_many_points_and_controls_a_sweep_has(store: str):
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    points = sum(name.startswith(f"{store}.") and is_swept(name) for name in crash.points())
    said = f"{points} points and {len(controls_of(store))} controls on {STORES[store]}"
    assert said in page, f"docs/reliability.md does not say {said!r}"


def test_the_page_says_how_many_walks_are_played():
    page = (ROOT / "docs" / "model-checking.md").read_text("utf-8")
    worlds = len(WORLDS) + len(FORKS)
    on_a_file, on_a_server = worlds * SqliteSubject.walks, worlds * PostgresSubject.walks
    said = f"{on_a_file:,} walks run in `make test` on SQLite and {on_a_server:,} on PostgreSQL"
    assert said in page, f"docs/model-checking.md does not say {said!r}"
