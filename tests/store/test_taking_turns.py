"""Processes that write to one file take turns: nobody starves, and the dead hold nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.store.sqlite.file.turnstile import Turnstile, holder
from tallystick.testing.conformance.drafts import done, submission
from tests.store.sqlite_subject import SqliteSubject, child

BUSY = """
import sys
from pathlib import Path
from tallystick.store.sqlite.file.turnstile import Turnstile
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
from tallystick.store.sqlite.file.turnstile import Turnstile
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
    assert holder(database).pid == process.pid
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert holder(database) is None
    turnstile = Turnstile(database)
    with turnstile:
        assert (tmp_path / "shop.db-floor").read_text().strip() == str(os.getpid())
    turnstile.close()


SUBMITS = """
import sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import done, submission
store = SqliteStore(Path(sys.argv[1]), SystemClock())
done(store, submission(SystemClock()))
store.close()
"""


def failing_once(call: Callable[..., object], code: int) -> Callable[..., object]:
    """Return a real call that fails the first time."""
    errors = [OSError(code, os.strerror(code))]

    def fails(*arguments: object) -> object:
        if errors:
            raise errors.pop()
        return call(*arguments)

    return fails


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_pid_that_cannot_be_written_costs_no_flush_and_blocks_nobody(
    subject: SqliteSubject, monkeypatch, code: int
):
    monkeypatch.setattr(os, "pwrite", failing_once(os.pwrite, code))
    done(subject.store, submission(subject.clock))
    assert holder(subject.path) is None
    assert child(SUBMITS, subject.path).stderr == ""
    assert subject.store.counts() == {"QUEUED": 2}


def test_a_holder_that_could_not_write_its_pid_is_not_taken_for_the_last_one(tmp_path, monkeypatch):
    database = tmp_path / "shop.db"
    turnstile = Turnstile(database)
    with turnstile:
        assert holder(database).pid == os.getpid()
    monkeypatch.setattr(os, "pwrite", failing_once(os.pwrite, errno.ENOSPC))
    with turnstile:
        assert holder(database).pid == 0
    with turnstile:
        assert holder(database).pid == os.getpid()
    turnstile.close()


@pytest.mark.parametrize("locks", [1, 2, 3])
def test_who_is_interrupted_on_the_way_to_its_turn_holds_nothing(
    subject: SqliteSubject, monkeypatch, locks: int
):
    """The gate is taken, the floor is taken, the gate is opened: Ctrl-C may come after each of them."""
    flock, calls = fcntl.flock, []

    def interrupted(*arguments: int) -> None:
        flock(*arguments)
        calls.append(arguments)
        if len(calls) == locks:
            raise KeyboardInterrupt

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        subject.store.apply([(submission(subject.clock),)])
    assert child(SUBMITS, subject.path).stderr == ""
    done(subject.store, submission(subject.clock))
    assert subject.store.counts() == {"QUEUED": 2}


def test_two_who_look_do_not_take_each_other_for_a_writer(subject: SqliteSubject):
    floor = subject.path.with_name(f"{subject.path.name}-floor")
    with floor.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert holder(subject.path) is None
