"""The examples print what they promise, and the guide can be followed to the letter, with a real kill -9."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("20_three_nodes.py", "DONE with 5 work items\n"),
        (
            "21_validate_and_fix.py",
            """two mistakes: DONE
nine mistakes: run nine failed: FIXING was entered 3 times, which is its limit
""",
        ),
        (
            "22_changed_input.py",
            """review of about.html home.html
first: page home, page about, index
review of about.html home.html
again: page about, index
""",
        ),
    ],
)
def test_an_example_prints_what_it_promises(name, said, tmp_path):
    answer = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert answer.stdout == said


@pytest.fixture
def guide():
    return (ROOT / "docs" / "guides" / "runs.md").read_text("utf-8")


@pytest.mark.timeout(60)
def test_the_guide_is_true(guide, tmp_path):
    """Write the pipeline of the guide, kill it with -9 in the middle of the counts, resume it."""
    program = re.search(r"```python\n# report\.py\n(.*?)```", guide, re.DOTALL)[1]
    # Instead of three seconds the counts take until their input is closed; they say that they have begun.
    assert "time.sleep(3)" in program
    # A line in one go: three of them may begin at once.
    waiting = r"import os, sys; os.write(2, b'begun\n'); sys.stdin.read()"
    (tmp_path / "report.py").write_text(program.replace("time.sleep(3)", waiting))
    log = tmp_path / "runs" / "first" / "events.ndjson"
    with subprocess.Popen(
        [sys.executable, "report.py"], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert [process.stderr.readline() for _ in range(3)] == ["begun\n"] * 3
        process.send_signal(signal.SIGKILL)
    tally = str(Path(sys.executable).with_name("tally"))

    def said(*command):
        return subprocess.run(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout

    assert said(tally, "run", "show", "first").count("running") == 4
    assert said(sys.executable, "report.py") == "DONE\n"
    promised = re.search(r"run first is sound: .*", guide)[0]
    assert said(tally, "run", "verify", "first") == f"{promised}\n"
    assert log.read_bytes().count(b'"ARTIFACT_WRITTEN"') == 5
    report = (tmp_path / "runs" / "first" / "artifacts" / "report.txt").read_text()
    assert report == "count/a.txt: 0\ncount/e.txt: 1\ncount/o.txt: 4\n"


def test_the_guide_names_every_command(guide):
    from tallystick.cli.commands.runs.run import command

    for name in command.commands:
        assert f"`tally run {name}" in guide
