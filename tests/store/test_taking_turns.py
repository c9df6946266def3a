"""Processes that write to one file take turns: nobody starves, and the dead hold nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tallystick.store.sqlite.turnstile import Turnstile, holder

BUSY = """
import sys
from pathlib import Path
from tallystick.store.sqlite.turnstile import Turnstile
database, everybody, mine, wanted = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
turnstile, turns = Turnstile(database), database.with_name("turns")
print("ready", flush=True)
sys.stdin.readline()
over = False
while not over:
    with turnstile:
        taken = turns.read_text()
        begun = max(taken.find(each) for each in everybody)
        over = set(taken) == set(everybody) and len(taken) - begun >= wanted
        if not over:
            turns.write_text(taken + mine)
"""

STANDS = """
import sys
from pathlib import Path
from tallystick.store.sqlite.turnstile import Turnstile
Turnstile(Path(sys.argv[1])).__enter__()
print("holds", flush=True)
sys.stdin.readline()
"""


def start(program: str, database: Path, *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(database), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def test_four_busy_processes_get_similar_shares(tmp_path):
    """Whoever has just had a turn queues behind the others, although it is awake and they are not."""
    wanted, turns = 400, tmp_path / "turns"
    turns.touch()
    processes = [start(BUSY, tmp_path / "shop.db", "abcd", name, wanted) for name in "abcd"]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    taken = turns.read_text()
    shares = Counter(taken[max(taken.find(name) for name in "abcd") :])  # from when the last of them is there
    assert min(shares.values()) > 0
    assert max(shares.values()) <= 3 * min(shares.values())


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
