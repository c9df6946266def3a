"""Sixteen processes write to one file: nobody is turned away, nobody starves, nobody waits long."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.clock import VirtualClock
from tallystick.store.sqlite.store import SqliteStore

WRITERS = 16
SECONDS = 3
TRIES = 4

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
waits, end = [], time.monotonic() + float(sys.argv[2])
while (begun := time.monotonic()) < end:
    done(store, submission(clock))
    waits.append(time.monotonic() - begun)
sys.stdout.write(json.dumps(waits))
store.close()
"""


def waits_of_all(path: Path, number: int = WRITERS, seconds: float = SECONDS) -> list[list[float]]:
    """Let processes write for a while and return how long each of them waited, write by write."""
    command = [sys.executable, "-c", WRITE, str(path), str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen(command, **pipes) for _ in range(number)]
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
    assert [errors for _out, errors in answers] == [""] * number, "nobody may see BUSY"
    return [json.loads(out) for out, _errors in answers]


@pytest.mark.slow
def test_sixteen_writing_processes_take_turns(tmp_path: Path):
    """The bounds hold on a machine that has time for us: sixteen cannot wait less than sixteen in a row."""
    seen = []
    for number in range(TRIES):
        path = tmp_path / f"shop-{number}.db"
        SqliteStore(path, VirtualClock()).close()
        (alone,) = waits_of_all(path, number=1, seconds=0.5)
        limit = max(0.25, 3 * WRITERS * sorted(alone)[int(len(alone) * 0.99)])
        waits = waits_of_all(path)
        counts = sorted(len(own) for own in waits)
        everybodys = sorted(wait for own in waits for wait in own)
        p99 = everybodys[int(len(everybodys) * 0.99)]
        store = SqliteStore(path, VirtualClock())
        assert store.counts() == {"QUEUED": sum(counts) + len(alone)}
        store.close()
        seen.append({"poorest": counts[0], "richest": counts[-1], "p99": p99, "limit": limit})
        if counts[-1] <= 3 * counts[0] and p99 <= limit:
            return
    pytest.fail(f"max/min above 3 or p99 above its limit in every try: {seen}")
