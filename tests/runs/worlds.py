"""What the tests of runs share: fast folders, comparable histories, a process that dies on command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallystick.clock import VirtualClock
from tallystick.ids import CountingIds
from tallystick.log.folder import Folder
from tallystick.log.reader import LogReader
from tallystick.runs.conduct import Surroundings
from tallystick.runs.events import RETRACED

HERE = Path(__file__).parent


def around(prefix: str = "id", **options) -> Surroundings:
    return Surroundings(clock=VirtualClock(), ids=CountingIds(prefix), **options)


@contextmanager
def fast_folder() -> Iterator[Path]:
    """Yield a folder in memory where there is one: a kill is as real there, and a sync costs nothing."""
    shm = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tally-", dir=shm if shm.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def events(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "events.ndjson").read_bytes().splitlines()]


def proven_events(run: Path) -> int:
    """Return how many events a reader that believes nothing accepts."""
    with Folder.open(run) as folder:
        descriptor = folder.open_file("events.ndjson")
        try:
            return sum(1 for _ in LogReader(folder.files, descriptor, "events.ndjson"))
        finally:
            folder.files.close(descriptor)


def history(run: Path) -> list[tuple[str, str]]:
    """Return the story of a run: its events without ids, times and RESUME records.

    The moves that a rewind has taken back and that are taken again belong to the records of a resume.
    """
    story: list[tuple[str, str]] = []
    for event in events(run):
        kind, payload = event["type"], event["payload"]
        if kind.startswith("RESUME_") or (kind == "RUN_STATE_CHANGED" and payload.get("reason") == RETRACED):
            continue
        known = {key: value for key, value in payload.items() if key not in {"span_id", "trace_id"}}
        story.append((kind, json.dumps(known, sort_keys=True)))
    return story


class Zygote:
    """Runs the toy pipeline in children that can be killed at a named point."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "zygote.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, root: Path, run_id: str = "r1", **command) -> int:
        """Return the exit status of one child; -9 means that it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"root": str(root), "run_id": run_id, **command}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
