"""What the unique index on places costs: `TMPDIR=/dev/shm python -m bench.places [--rounds 7]`.

Async 10-step jobs, 64 in flight, on files with the index and on files from which it was dropped with the
trigger that reads it, in turns. A step looks for an event at its place on both. No log is moved, so that its
frames can be counted by the b-tree whose page they are.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from bench.our_workflows import app
from bench.ours import run_jobs
from tallystick.store.sqlite.store import SqliteStore

JOBS, STEPS, IN_FLIGHT = 1_024, 10, 64
_HEAD, _FRAME = 32, 24
_WITHOUT = "DROP TRIGGER IF EXISTS events_place; DROP INDEX IF EXISTS steps_places"


def one(file: Path, *, index: bool) -> dict[str, Any]:
    """Run the jobs on a fresh file and return the processor time of a job, and the frames of its log."""
    SqliteStore.checkpoint = lambda _store: None  # type: ignore[method-assign]  # the log keeps every frame
    app.bind(f"sqlite:///{file}")
    if not index:
        app.runtime()
        apsw.Connection(str(file)).execute(_WITHOUT)
    with app.worker(concurrency=IN_FLIGHT):
        run_jobs("async", STEPS, 2 * IN_FLIGHT)
        before, flushes = resource.getrusage(resource.RUSAGE_SELF), app.runtime().committer.flushes
        run_jobs("async", STEPS, JOBS)
        after, flushed = resource.getrusage(resource.RUSAGE_SELF), app.runtime().committer.flushes - flushes
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        frames = frames_of(file)
    app.close()
    return {"cpu": cpu / JOBS * 1e6, "flushes": flushed, "frames": frames}


def frames_of(file: Path) -> dict[str, int]:
    """Return how many frames of the log are pages of each b-tree."""
    log, pages, at = Path(f"{file}-wal").read_bytes(), Counter[int](), _HEAD
    connection = apsw.Connection(str(file))
    size = int(connection.execute("PRAGMA page_size").get)
    while at < len(log):
        pages[struct.unpack_from(">I", log, at)[0]] += 1
        at += _FRAME + size
    trees: Counter[str] = Counter()
    for name, page in connection.execute("SELECT name, pageno FROM dbstat"):
        trees[name] += pages[page]
    return dict(trees.most_common(8))


def main() -> int:
    parser = argparse.ArgumentParser(description="What the unique index on places costs.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", choices=("with", "without"), help="one measurement, in this process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tallystick-bench-") as folder:
        if options.one:
            print(json.dumps(one(Path(folder) / "places.db", index=options.one == "with")))
            return 0
    runs: dict[str, list[dict[str, Any]]] = {"with": [], "without": []}
    for number in range(options.rounds):
        for side in list(runs)[:: -1 if number % 2 else 1]:
            asked = [sys.executable, "-m", "bench.places", "--one", side]
            runs[side].append(json.loads(subprocess.run(asked, check=True, capture_output=True).stdout))
    for side, measured in runs.items():
        cpu = [run["cpu"] for run in measured]
        print(f"{side} the index: {statistics.median(cpu):.0f} us of CPU a job (least {min(cpu):.0f})")
        for name, count in measured[0]["frames"].items():
            print(f"  {name:28} {count / (JOBS + 2 * IN_FLIGHT):6.2f} frames a job")
    return 0


if __name__ == "__main__":
    sys.exit(main())
