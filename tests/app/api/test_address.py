"""Where a Tally keeps its books: where the program says; the variable is for one that does not say."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from tallystick import Tally
from tallystick.errors import BadInput

_TWO = """
from tallystick import Tally
orders, letters, other = Tally("sqlite:///orders.db"), Tally("sqlite:///letters.db"), Tally()
for app in (orders, letters, other):
    @app.workflow
    def flow() -> None: ...
    flow.submit()
    app.close()
"""


def test_an_address_that_a_program_gives_is_not_overridden(tmp_path, monkeypatch, caplog):
    """As in a test run in a shell whose TALLY_URL is that of the shop."""
    monkeypatch.setenv("TALLY_URL", f"sqlite:///{tmp_path}/shop.db")
    app = Tally(f"sqlite:///{tmp_path}/test.db")

    @app.workflow
    def flow() -> None: ...

    with caplog.at_level(logging.INFO, "tallystick.store"):
        flow.submit()
    app.close()
    assert (tmp_path / "test.db").exists()
    assert not (tmp_path / "shop.db").exists()
    assert [record.action for record in caplog.records] == ["address.variable_unused"]


def test_each_tally_of_a_process_has_its_own_store_and_the_variable_is_for_the_one_without(tmp_path):
    subprocess.run(
        [sys.executable, "-c", _TWO], cwd=tmp_path, check=True, env={"TALLY_URL": "sqlite:///other.db"}
    )
    files = {path.name for path in tmp_path.iterdir() if path.suffix == ".db"}
    assert files == {"orders.db", "letters.db", "other.db"}


def test_without_address_and_variable_it_is_the_default_file(monkeypatch):
    monkeypatch.setenv("TALLY_URL", "")
    assert Tally().url == "sqlite:///tally.db"


@pytest.mark.parametrize("url", [5, b"sqlite:///x.db", object()])
def test_what_is_no_text_is_refused_where_it_is_given(url, tmp_path):
    app = Tally(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(BadInput):
        app.bind(url)
    wrong = Tally(url)

    @wrong.workflow
    def flow() -> None: ...

    with pytest.raises(BadInput):
        flow.submit()
