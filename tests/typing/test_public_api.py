"""The types of the public API are part of its contract: what mypy and pyright accept and refuse is a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SRC = ROOT / "src"

MARK = re.compile(r"# E: (?P<mypy>[a-z, -]+) \| (?P<pyright>[A-Za-z, -]+)$")
MYPY_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+): error: .*\[(?P<rule>[a-z-]+)\]$")

# What pyright's strict mode says besides about a line that is wrong already.
FOLLOWS = {"reportUnknownMemberType", "reportUnknownVariableType", "reportUnusedVariable"}

# For each file name, the rules that were broken on each line.
Report = dict[str, dict[int, set[str]]]


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=HERE, env={**os.environ, **environment}
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


class Api(NamedTuple):
    """Where `import tallystick` leads the checkers, and the programs that are checked against it."""

    path: Path
    passes: str
    fails: str

    def checked_files(self) -> list[Path]:
        """Return the programs, and a stub itself; the package is checked by `make check`."""
        return [HERE / self.passes, HERE / self.fails, *sorted(self.path.rglob("*.pyi"))]


# What is promised, before all of it exists, and what exists.
PROMISED = Api(HERE / "stub", "passes.py", "fails.py")
KERNEL = Api(SRC, "kernel_passes.py", "kernel_fails.py")


def shown_to_users(scratch: Path) -> list[Path]:
    """Return the examples of workflows, and the program of the README."""
    readme = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert readme
    program = scratch / "readme.py"
    program.write_text(readme[1], "utf-8")
    return [program, *sorted((ROOT / "examples").glob("[01]*.py"))]


def mypy(api: Api, scratch: Path) -> Report:
    report: Report = {}
    options = ["--config-file=", "--strict", "--no-pretty", "--no-error-summary", f"--cache-dir={scratch}"]
    files = api.checked_files() + (shown_to_users(scratch) if api == KERNEL else [])
    found_lines = run(sys.executable, "-m", "mypy", *options, *files, MYPYPATH=str(api.path)).splitlines()
    for line in found_lines:
        found = MYPY_LINE.match(line)
        assert found or ": note: " in line, line
        if found:
            report.setdefault(Path(found["file"]).name, {}).setdefault(int(found["line"]), set()).add(
                found["rule"]
            )
    return report


def pyright(api: Api, scratch: Path) -> Report:
    settings = {
        "include": [str(path) for path in api.checked_files()],
        "extraPaths": [str(api.path)],
        "typeCheckingMode": "strict",
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


def marked(file: str, checker: str) -> dict[int, set[str]]:
    """Return what a file says that a checker reports; `-` says that it is known to stay silent."""
    lines = enumerate((HERE / file).read_text("utf-8").splitlines(), start=1)
    marks = {number: MARK.search(line) for number, line in lines}
    rules = {number: set(mark[checker].split(", ")) for number, mark in marks.items() if mark}
    return {number: names for number, names in rules.items() if names != {"-"}}


@pytest.mark.parametrize("checker", [mypy, pyright])
@pytest.mark.parametrize("api", [PROMISED, KERNEL], ids=["promised", "kernel"])
def test_right_programs_are_accepted_and_every_mistake_is_reported_on_its_line(
    checker: Callable[[Api, Path], Report], api: Api, tmp_path: Path
):
    report = checker(api, tmp_path)
    mistakes = report.pop(api.fails)
    assert report == {}, "right programs and the API itself have no errors"
    found = {line: rules - FOLLOWS for line, rules in mistakes.items()}
    assert found == marked(api.fails, checker.__name__)
