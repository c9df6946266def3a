"""The pages of the tutorial, on backups and on a nightly import work as they stand: saved and typed.

A Python block is a file, named by the comment in its first line. A block `console` is a terminal: what
follows a `$` is typed, the lines below it are what the terminal shows. `…` stands for what differs each
time: part of a line, or on a line of its own any number of lines. A command that ends with `&` stays in the
background.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = sorted((ROOT / "docs" / "tutorial").glob("[1-6]-*.md"))
PAGES = [*TUTORIAL, *(ROOT / "docs" / "guides" / f"{name}.md" for name in ("backup", "scheduled-import"))]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (?P<name>\w+\.py)\n")
NOTICE = re.compile(r"(?:bash: line \d+: +\d+|\[\d\][+-]?) +(?:Killed|Terminated|Done)\b.*\n")
MARK = "-- the command has ended --\n"
PATIENCE = 60


class Shell:
    """A shell with job control, and everything that it and its children print."""

    def __init__(self, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env={**os.environ, "PATH": path, "PYTHONWARNINGS": "error", "NO_COLOR": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._write("set -m")

    def type(self, command: str, lines: int) -> str:
        """Return what a command prints: until it ends, or in the background so many lines."""
        behind = command.endswith("&")
        self._write(command if behind else f"{command}\necho '{MARK.strip()}'")
        seen: list[str] = []
        while not behind or len(seen) < lines:
            line = self._lines.get(timeout=PATIENCE)
            if line == MARK:
                break
            if not NOTICE.match(line):
                seen.append(line)
        return "".join(seen)

    def close(self) -> None:
        """End what is left in the background, and the shell."""
        self._write("kill -9 $(jobs -p) 2>/dev/null; exit")
        self._process.communicate(timeout=PATIENCE)
        self._reader.join()

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)


def typed(block: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a terminal, each with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def pattern(lines: list[str]) -> str:
    """Return what a terminal shows as a regular expression."""
    told = [r"(?:.*\n)*" if line == "…" else f"{re.escape(line).replace('…', '.*')}\n" for line in lines]
    return "".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_what_a_page_tells_to_type_does_what_it_says(page, tmp_path):
    shell = Shell(tmp_path)
    try:
        for block in BLOCK.finditer(page.read_text("utf-8")):
            if block["language"] == "python":
                name = FILE.match(block["text"])
                assert name, "a program of the tutorial begins with the name of its file"
                (tmp_path / name["name"]).write_text(block["text"], "utf-8")
            elif block["language"] == "console":
                for command, lines in typed(block["text"]):
                    seen = shell.type(command, len(lines))
                    assert re.fullmatch(pattern(lines), seen), f"$ {command}\n{seen}"
    finally:
        shell.close()


def test_the_tutorial_has_six_pages_in_a_row():
    assert [page.name[0] for page in TUTORIAL] == list("123456")
    for page, following in pairwise(TUTORIAL):
        assert f"]({following.name})" in page.read_text("utf-8"), "a page leads to the next"


def test_a_terminal_is_compared_line_by_line():
    assert typed("$ a &\nb\n$ c\n") == [("a &", ["b"]), ("c", [])]
    assert re.fullmatch(pattern(["job … ended", "…"]), "job 17 ended\nx\ny\n")
    assert not re.fullmatch(pattern(["a.c"]), "abc\n")
