"""Processes that write to one file take turns: nobody starves, and the dead hold nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tallystick.store.sqlite.turnstile import Turnstile, holder

BUSY = """
import sys, time
from pathlib import Path
from tallystick.store.sqlite.turnstile import Turnstile
turnstile, turns = Turnstile(Path(sys.argv[1])), 0
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 1.0
while time.monotonic() < end:
    with turnstile:
        turns += 1
        time.sleep(0.001)
print(turns)
"""

STANDS = """
import sys
from pathlib import Path
from tallystick.store.sqlite.turnstile import Turnstile
Turnstile(Path(sys.argv[1])).__enter__()
print("holds", flush=True)
sys.stdin.readline()
"""


def start(program: str, database: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def test_four_busy_processes_get_similar_shares(tmp_path):
    """Whoever has just had a turn queues behind the others, although it is awake and they are not."""
    processes = [start(BUSY, tmp_path / "shop.db") for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    turns = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert min(turns) > 0
    assert max(turns) <= 3 * min(turns)


def test_a_killed_holder_blocks_nobody(tmp_path):
    database = tmp_path / "shop.db"
    process = start(STANDS, database)
    assert holder(database) == process.pid
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert holder(database) is None
    turnstile = Turnstile(database)
    with turnstile:
        assert (tmp_path / "shop.db-floor").read_text().strip() == str(os.getpid())
    turnstile.close()
