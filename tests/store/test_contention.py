"""Sixteen processes write to one file: nobody is turned away, nobody starves, nobody waits long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tallystick.clock import VirtualClock
from tallystick.store.sqlite.store import SqliteStore

WRITERS = 16
SECONDS = 3
TRIES = 4
WARM_UP = 3
P99_SECONDS = 0.25

WRITE = """
import json, sys, time
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import done, submission
clock = SystemClock()
store = SqliteStore(Path(sys.argv[1]), clock)
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
share = lambda: [int(part) / 1e9 for part in Path("/proc/self/schedstat").read_text().split()[:2]]
waits, before, end = [], share(), time.monotonic() + float(sys.argv[2])
while (begun := time.monotonic()) < end:
    done(store, submission(clock))
    waits.append(time.monotonic() - begun)
ran, starved = (now - then for now, then in zip(share(), before))
sys.stdout.write(json.dumps({"waits": waits, "ran": ran, "starved": starved}))
store.close()
"""


class Writing(NamedTuple):
    """What one process saw: how long each write took, and for how long it had, and lacked, a processor."""

    waits: list[float]
    ran: float
    starved: float


def written_by_all(path: Path) -> list[Writing]:
    """Let processes write for a while and return what each of them saw."""
    command = [sys.executable, "-c", WRITE, str(path), str(SECONDS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen(command, **pipes) for _ in range(WRITERS)]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n", writer.communicate()
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        answers = [writer.communicate(timeout=60) for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [errors for _out, errors in answers] == [""] * WRITERS, "nobody may see BUSY"
    return [Writing(**json.loads(out)) for out, _errors in answers]


def seconds_a_sync(folder: Path) -> float:
    """Return how long a page of a log takes to become durable here, on average and at this moment."""
    count, descriptor = 100, os.open(folder / "syncs", os.O_WRONLY | os.O_CREAT)
    try:
        begun = time.monotonic()
        for _ in range(count):
            os.write(descriptor, bytes(4096))
            os.fdatasync(descriptor)
        return (time.monotonic() - begun) / count
    finally:
        os.close(descriptor)


@pytest.mark.slow
def test_sixteen_writing_processes_take_turns(tmp_path: Path):
    """One small transaction at a time, for seconds on end; a busy neighbour may cost a try, not a bound."""
    seen = []
    for number in range(TRIES):
        path = tmp_path / f"shop-{number}.db"
        SqliteStore(path, VirtualClock()).close()
        syncs = [seconds_a_sync(tmp_path)]
        writers = written_by_all(path)
        syncs.append(seconds_a_sync(tmp_path))
        counts = sorted(len(writer.waits) for writer in writers)
        # The first few writes of each fill its caches while the others are still being told to begin.
        steady = sorted(wait for writer in writers for wait in writer.waits[WARM_UP:])
        p99 = steady[int(len(steady) * 0.99)]
        store = SqliteStore(path, VirtualClock())
        assert store.counts() == {"QUEUED": sum(counts)}
        store.close()
        seen.append(
            {
                "poorest": counts[0],
                "richest": counts[-1],
                "p99": p99,
                "sync": max(syncs),
                "ran": sum(writer.ran for writer in writers) / SECONDS,
                "starved": sum(writer.starved for writer in writers) / SECONDS,
            }
        )
        assert counts[-1] <= 3 * counts[0], seen
        if p99 <= P99_SECONDS:
            return
    if all(excused(each) for each in seen):
        pytest.skip(f"sixteen syncs take this disk too long, or others had the processors: {seen}")
    pytest.fail(f"p99 above {P99_SECONDS} s in every try: {seen}")


def excused(figures: dict[str, float]) -> bool:
    """Tell whether no turnstile could have kept the bound: sixteen syncs in a row, or no processor for us."""
    return WRITERS * figures["sync"] > P99_SECONDS or (figures["starved"] > 1 > figures["ran"])
