"""The programs of examples/remote: real processes, on every store, by changing the address alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.engine.audit import audit
from tests.examples.test_examples import promised
from tests.postgres.subject import PostgresSubject

FOLDER = Path(__file__).parents[2] / "examples" / "remote"
pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres", "azure"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'books.db'}"
        return
    if request.param == "azure":
        yield request.getfixturevalue("azure_url")
        return
    subject = PostgresSubject(request.getfixturevalue("server"))
    yield subject.url
    subject.close()


@pytest.mark.parametrize("name", ["pipeline.py", "counting.py"])
def test_a_remote_example_prints_what_it_says_and_its_books_balance(name: str, url: str, tmp_path: Path):
    if name == "counting.py" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    if name == "counting.py" and url.startswith("azure:"):
        pytest.skip("it is a workflow, and those are not kept there")
    program = FOLDER / name
    done = subprocess.run(
        [sys.executable, program, url],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    ((_dies, printed),) = promised(program.read_text("utf-8"))
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    app = Tally(url)
    assert audit(app.runtime().store).findings == []
    app.close()


def test_an_example_whose_server_cannot_start_says_so_and_ends(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, FOLDER / "pipeline.py", f"sqlite:///{tmp_path / 'missing' / 'books.db'}"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 1
    assert "tally serve ended before it could serve" in done.stderr
