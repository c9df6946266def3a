"""Processes of a measurement, and what they have used of the processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a module of this Python, and end it by SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def serving(*command: str) -> Iterator[tuple[str, str, int]]:
    """Start what prints its address and key as one line of JSON; yield both and its process id."""
    with running(*command) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "it ended before it served"
            text += line
        said = json.loads(text)
        yield said["url"], said["key"], process.pid


def our_server(store: str) -> tuple[str, ...]:
    """Return how our server is started."""
    return (
        "tallystick", "serve", "bench.remote_sides.app", "--url", store, "--bind", "127.0.0.1:0",
        "--in-flight", "100000000", "--json",
    )  # fmt: skip


def cpu_seconds(pid: int) -> float:
    """Return what a process and its children have used of the processor."""
    return sum(map(int, _stat(pid)[11:15])) / _TICKS + sum(map(cpu_seconds, _children(pid)))


def _children(pid: int) -> list[int]:
    found = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    return [child for child in found if (about := _stat(child)) and int(about[1]) == pid]


def _stat(pid: int) -> list[str]:
    """Return what the system knows of a process, behind its name; nothing if it has just ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
