"""One side of a comparison: a program in a process of its own that measures itself and answers in JSON."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.sync_rate import sync_rate

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 900


class SideFailed(Exception):
    """A side ended without an answer."""


@dataclass(frozen=True)
class Side:
    """A program and the part of its order that is always the same."""

    name: str
    command: tuple[str, ...]
    order: dict[str, Any] = field(default_factory=dict)
    # Where it runs, and so whose `bench` it is.
    root: Path = ROOT


@dataclass(frozen=True)
class Measured:
    """An answer, with the rate of the disk just before and just after."""

    answer: dict[str, Any]
    sync_rates: tuple[float, float]

    @property
    def note(self) -> str:
        """Return what the disk did meanwhile, and how well flushes were shared."""
        before, after = self.sync_rates
        said = self.answer
        flushes = ""
        if "bundles" in said:
            flushes = f", {said['bundles'] / said['flushes']:.0f} bundles a flush"
        elif "flushes" in said:
            flushes = f", {said['flushes']} flushes"
        return f"syncs/s {before:,.0f} -> {after:,.0f}{flushes}"


def measure(side: Side, folder: Path, **order: Any) -> Measured:
    """Let a side measure itself on fresh files."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as fresh:
        before = sync_rate(folder)
        text = json.dumps({**side.order, **order, "folder": fresh})
        run = subprocess.run(
            [*side.command, text],
            cwd=side.root,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if run.returncode or not run.stdout.strip():
            raise SideFailed(f"{side.name} {order}: exit {run.returncode}\n{run.stderr[-2000:]}")
        return Measured(json.loads(run.stdout.splitlines()[-1]), (before, sync_rate(folder)))


@contextmanager
def taking_turns(side: Side, folder: Path, **order: Any) -> Iterator[Turns]:
    """Start a side that measures so many jobs whenever it is told to."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as fresh:
        text = json.dumps({**side.order, **order, "folder": fresh})
        process = subprocess.Popen(
            [*side.command, text],
            cwd=side.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            turns = Turns(side, process)
            turns.answer()
            yield turns
        finally:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Turns:
    """A running side."""

    def __init__(self, side: Side, process: subprocess.Popen[str]) -> None:
        self.side = side
        self._process = process

    def take(self, jobs: int) -> list[float]:
        """Let it run some jobs, one after the other, and return the milliseconds of each."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{jobs}\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SideFailed(f"{self.side.name} ended early")
        return json.loads(line)
