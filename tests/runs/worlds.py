"""What the tests of runs share: fast folders, comparable histories, a process that dies on command."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallystick.clock import VirtualClock
from tallystick.ids import CountingIds
from tallystick.log.folder import Folder
from tallystick.log.reader import LogReader
from tallystick.runs.log.events import RETRACED
from tallystick.runs.orchestrator.start import Surroundings
from tests.fork_server import ForkServer


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


def files_of(run: Path) -> str:
    """Return the hash of all that a run has on the disk, names and bytes."""
    digest = hashlib.sha256()
    for path in sorted(run.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        digest.update(f"{path.relative_to(run)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class KilledRuns:
    """Runs the toy pipeline in children that can be killed at a named point.

    Ids are counted, and each process that works on a run has a prefix of its own. So two kills between which
    nothing was written leave the same bytes, and a resume need be tried only once.
    """

    def __init__(self) -> None:
        self._server = ForkServer("tests.runs.killed_run")
        self._processes: Counter[Path] = Counter()
        self._tried: set[tuple[str, str]] = set()

    def run(self, root: Path, run_id: str = "r1", **command: object) -> int:
        """Return the exit status of one child; -9 means that it was killed."""
        self._processes[root] += 1
        return self._server.run(
            root=str(root), run_id=run_id, ids=f"process{self._processes[root]}", **command
        )

    def is_new(self, run: Path, **command: object) -> bool:
        """Return whether this command was never tried on these very bytes; now it will be."""
        found = files_of(run), json.dumps(command, sort_keys=True)
        known = found in self._tried
        self._tried.add(found)
        return not known

    def close(self) -> None:
        self._server.close()
