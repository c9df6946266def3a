"""The types of the public API are part of its contract: what mypy and pyright accept and refuse is a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Where `import tallystick` leads the checkers. None will mean the package itself.
API: Path | None = HERE / "stub"

MARK = re.compile(r"# E: (?P<mypy>[a-z, -]+) \| (?P<pyright>[A-Za-z, -]+)$")
MYPY_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+): error: .*\[(?P<rule>[a-z-]+)\]$")

# For each file name, the rules that were broken on each line.
Report = dict[str, dict[int, set[str]]]


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=HERE, env={**os.environ, **environment}
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


def checked_files() -> list[Path]:
    return [HERE / "passes.py", HERE / "fails.py", *(sorted(API.rglob("*.pyi")) if API else [])]


def mypy(scratch: Path) -> Report:
    path = {"MYPYPATH": str(API)} if API else {}
    report: Report = {}
    options = ["--config-file=", "--strict", "--no-pretty", "--no-error-summary", f"--cache-dir={scratch}"]
    for line in run(sys.executable, "-m", "mypy", *options, *checked_files(), **path).splitlines():
        found = MYPY_LINE.match(line)
        assert found or ": note: " in line, line
        if found:
            report.setdefault(Path(found["file"]).name, {}).setdefault(int(found["line"]), set()).add(
                found["rule"]
            )
    return report


def pyright(scratch: Path) -> Report:
    settings = {
        "include": [str(path) for path in checked_files()],
        "extraPaths": [str(API)] if API else [],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    config = scratch / "pyrightconfig.json"
    config.write_text(json.dumps(settings), "utf-8")
    output = run(
        sys.executable, "-m", "basedpyright", "--outputjson", "-p", config, "--pythonpath", sys.executable
    )
    report: Report = {}
    for found in json.loads(output)["generalDiagnostics"]:
        if found["severity"] == "error":
            lines = report.setdefault(Path(found["file"]).name, {})
            lines.setdefault(found["range"]["start"]["line"] + 1, set()).add(found["rule"])
    return report


def marked(checker: str) -> dict[int, set[str]]:
    """Return what fails.py says that a checker reports; `-` says that it is known to stay silent."""
    lines = enumerate((HERE / "fails.py").read_text("utf-8").splitlines(), start=1)
    marks = {number: MARK.search(line) for number, line in lines}
    rules = {number: set(mark[checker].split(", ")) for number, mark in marks.items() if mark}
    return {number: names for number, names in rules.items() if names != {"-"}}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_right_programs_are_accepted_and_every_mistake_is_reported_on_its_line(
    checker: Callable[[Path], Report], tmp_path: Path
):
    report = checker(tmp_path)
    mistakes = report.pop("fails.py")
    assert report == {}, "passes.py and the API itself have no errors"
    assert mistakes == marked(checker.__name__)
