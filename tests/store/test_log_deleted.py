"""The log or its index is deleted or replaced under running processes: a clear error, and nothing lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tallystick.clock import VirtualClock
from tallystick.errors import StoreGone
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import done, held_job, submission
from tallystick.testing.conformance.promises.loans import Borrower, effect
from tests.store.sqlite_subject import SqliteSubject, child

COUNTED = """
import sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import done, submission
store = SqliteStore(Path(sys.argv[1]), SystemClock())
done(store, submission(SystemClock()))
print(sum(store.counts().values()))
store.close()
"""

# Submits and says what was acknowledged, until its files are gone; then it stays as it is.
SUBMITS = """
import sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.engine.committer import Committer
from tallystick.errors import StoreGone
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import submission
clock = SystemClock()
store = SqliteStore(Path(sys.argv[1]), clock)
committer = Committer(store, after_flush=store.checkpoint)
print("ready", flush=True)
while True:
    wish = submission(clock)
    try:
        committer.call((wish,))
    except StoreGone as error:
        print("gone", flush=True)
        break
    print(wish.job.job_id, flush=True)
sys.stdin.readline()
committer.close()
store.close()
"""


def beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


@pytest.mark.parametrize("endings", [("-wal", "-shm"), ("-wal",), ("-shm",)])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_nothing_is_written_any_more_and_a_waiting_thread_is_let_go(
    subject: SqliteSubject, endings: tuple[str, ...], how: str
):
    held = held_job(subject.store, subject.clock)
    for ending in endings:
        beside(subject.path, ending).rename(beside(subject.path, f"{ending}-away"))
        if how == "replaced":
            beside(subject.path, ending).touch()
    waiting = Borrower(held, effect(subject, held, "never"))
    with pytest.raises(StoreGone, match=r"-wal|-shm"):
        subject.store.apply([(submission(subject.clock),), (waiting.request,)])
    waiting.join()
    with pytest.raises(StoreGone), subject.store.transaction():
        raise AssertionError("never lent")
    with pytest.raises(StoreGone), subject.store.connect():
        raise AssertionError("never lent")
    with pytest.raises(StoreGone):
        subject.store.finished([held.fence.job_id])
    assert len({subject.store.pulse() for _ in range(3)}) == 3, "every look is to hear of it"
    for ending in endings:
        beside(subject.path, f"{ending}-away").rename(beside(subject.path, ending))
    done(subject.store, submission(subject.clock))
    assert subject.store.counts() == {"IN_PROGRESS": 1, "QUEUED": 1}


def test_what_was_acknowledged_is_saved_when_the_log_is_deleted(subject: SqliteSubject):
    for _ in range(5):
        done(subject.store, submission(subject.clock))
    for ending in ("-wal", "-shm"):
        beside(subject.path, ending).unlink()
    with pytest.raises(StoreGone, match="what was acknowledged is saved"):
        subject.store.apply([(submission(subject.clock),)])
    ended = child(COUNTED, subject.path)
    assert (ended.stdout, ended.stderr) == ("6\n", "")


def test_who_closes_late_does_not_remove_the_log_of_others(tmp_path: Path):
    path = tmp_path / "shop.db"
    store = SqliteStore(path, VirtualClock())
    done(store, submission(VirtualClock()))
    for ending in ("-wal", "-shm"):
        beside(path, ending).unlink()
    with pytest.raises(StoreGone):
        store.apply([(submission(VirtualClock()),)])
    ended = child(COUNTED, path)
    assert (ended.stdout, ended.stderr) == ("2\n", "")
    begun = beside(path, "-wal").stat()
    assert begun.st_size > 0
    store.close()
    assert beside(path, "-wal").stat().st_ino == begun.st_ino
    assert child(COUNTED, path).stdout == "3\n"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Three that submit to one file."""
    path = tmp_path / "shop.db"
    SqliteStore(path, VirtualClock()).close()
    command = [sys.executable, "-c", SUBMITS, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(3)]
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("end", ["killed", "closed"])
@pytest.mark.slow
def test_processes_that_submit_lose_nothing_they_acknowledged(tmp_path: Path, processes, end: str):
    path = tmp_path / "shop.db"
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    acknowledged = [process.stdout.readline().strip() for process in processes for _ in range(5)]
    for ending in ("-wal", "-shm"):
        beside(path, ending).unlink()
    for process in processes:
        acknowledged += iter(lambda process=process: process.stdout.readline().strip(), "gone")
    for process in processes:
        if end == "killed":
            process.kill()
        process.communicate("go\n" if end == "closed" else None, timeout=30)
    store = SqliteStore(path, VirtualClock())
    assert {job_id for job_id in acknowledged if store.job(job_id) is None} == set()
    store.close()
    intact = apsw.Connection(str(path))
    assert intact.execute("PRAGMA integrity_check").get == "ok"
    intact.close()
