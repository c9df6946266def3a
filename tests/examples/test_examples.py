"""Every example runs in a process of its own and prints what its last comment says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.job_log import without_job_log

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
TESTS = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^# Output(?P<first> of the first run, which ends by SIGKILL)?:\n(?P<lines>(?:#.*\n?)*?)(?=# Output|\Z)",
    re.MULTILINE,
)


def run(example: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", example],
        cwd=folder,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )


def promised(text: str) -> list[tuple[bool, str]]:
    """Return what an example says it prints, run by run, and whether that run ends by SIGKILL."""
    return [
        (bool(block["first"]), "".join(f"{line[2:]}\n" for line in block["lines"].splitlines()))
        for block in BLOCK.finditer(text)
    ]


SAYS = [path for path in EXAMPLES if promised(path.read_text("utf-8"))]


@pytest.mark.parametrize("example", SAYS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(example, tmp_path):
    for dies, printed in promised(example.read_text("utf-8")):
        done = run(example, tmp_path)
        assert done.returncode == (-signal.SIGKILL if dies else 0), done.stderr
        assert (done.stdout, without_job_log(done.stderr)) == (printed, "")


def test_an_example_that_does_not_say_what_it_prints_has_a_test_that_names_it():
    tests = "".join(path.read_text("utf-8") for path in TESTS.rglob("*.py"))
    assert not [path.name for path in EXAMPLES if path not in SAYS and path.stem not in tests]
    assert len(SAYS) >= 8


def test_the_examples_are_numbered_and_named():
    assert EXAMPLES
    assert not [path.name for path in EXAMPLES if not re.fullmatch(r"\d\d_[a-z0-9_]+\.py", path.name)]


def test_the_promised_output_is_read_from_the_last_comment():
    text = "x = 1\n\n# Output of the first run, which ends by SIGKILL:\n# a\n# Output:\n# b\n#   c\n"
    assert promised(text) == [(True, "a\n"), (False, "b\n  c\n")]
