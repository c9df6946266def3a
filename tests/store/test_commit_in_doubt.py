"""E14: a COMMIT that a disk fails is neither durable nor not; it is written over, or called unknown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tallystick.clock import SystemClock
from tallystick.errors import OutcomeUnknown
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import (
    asking,
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    release,
    step,
    submission,
)
from tests.store.sqlite_subject import child

CLOCK = SystemClock()
LONG_MS = 600_000


class Disk(apsw.VFS):
    """The disk of this machine, which fails to sync a log so many times when it is told to."""

    def __init__(self) -> None:
        self.failures = 0
        super().__init__("failing", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 (as the library has it)
        return File(self, name, flags)


class File(apsw.VFSFile):
    """A file on it."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 (as the library has it)
        super().xSync(flags)
        if self._is_log and self._disk.failures:
            # The data may well be on the disk; the system says that it does not know.
            self._disk.failures -= 1
            raise apsw.IOError("disk I/O error")


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.unregister()


@pytest.fixture
def store(disk: Disk, tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "shop.db", CLOCK)
    yield opened
    disk.failures = 0
    opened.close()


def names(store: SqliteStore) -> list[str]:
    with store.connect() as db:
        return [name for (name,) in db.execute("SELECT name FROM steps ORDER BY n")]


def test_a_sync_that_fails_once_is_made_good_and_nobody_hears_of_it(store: SqliteStore, disk: Disk) -> None:
    held = held_job(store, CLOCK, lease_ms=LONG_MS)
    disk.failures = 1
    wish = submission(CLOCK)
    assert store.apply([(step(held, CLOCK, "second"),), (wish,)]) == [None, None]
    assert disk.failures == 0
    assert names(store) == ["second"]
    assert store.job(wish.job.job_id) is not None
    done(store, finish(held, CLOCK))
    check_chain(store.history(held.fence.job_id))


def test_a_disk_that_goes_on_failing_is_an_unknown_outcome(store: SqliteStore, disk: Disk) -> None:
    held = held_job(store, CLOCK, lease_ms=LONG_MS)
    done(store, step(held, CLOCK, "first"))
    disk.failures = 2
    with pytest.raises(OutcomeUnknown, match="look before you repeat it"):
        store.apply([(step(held, CLOCK, "second"),)])
    # What was on its way behind it, and would be placed behind something that is not there.
    (outcome,) = store.apply([(step(held, CLOCK, "third"), finish(held, CLOCK))])
    assert isinstance(outcome, OutcomeUnknown)
    assert names(store) == ["first"]
    done(store, release(held, CLOCK))
    (held,) = claimed(store, claim())
    assert [record.name for record in held.records] == ["first"]
    done(store, finish(held, CLOCK))
    check_chain(store.history(held.fence.job_id))


def test_no_directive_goes_out_behind_a_step_of_which_nobody_knows(store: SqliteStore, disk: Disk) -> None:
    held = held_job(store, CLOCK, lease_ms=LONG_MS)
    disk.failures = 2
    with pytest.raises(OutcomeUnknown):
        store.apply([(step(held, CLOCK, "price"),)])
    (outcome,) = store.apply([(asking(held, '{"cents":1999}'),)])
    assert isinstance(outcome, OutcomeUnknown)
    with store.connect() as db:
        assert db.execute("SELECT count(*) FROM outbox") == [(0,)]


def test_a_users_own_transaction_on_a_failing_disk_is_an_unknown_outcome(
    store: SqliteStore, disk: Disk
) -> None:
    def keep_mine() -> None:
        with store.transaction() as db:
            db.execute("CREATE TABLE mine (n INTEGER)")
            disk.failures = 1

    with pytest.raises(OutcomeUnknown):
        keep_mine()
    done(store, submission(CLOCK))


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.store.test_commit_in_doubt import CLOCK, Disk, SqliteStore, submission
disk = Disk()
store = SqliteStore(Path(sys.argv[1]), CLOCK)
store.apply([(submission(CLOCK, "before"),)])
disk.failures = 1_000
try:
    store.apply([(submission(CLOCK, "doubtful"),)])
except Exception as error:
    print(error.code, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_failed_commit_has_left_in_the_log_is_never_said_to_be_gone(tmp_path: Path) -> None:
    """Killed there, the file is recovered with the transaction in it."""
    path = tmp_path / "shop.db"
    ended = child(KILLED, path)
    assert ended.stdout == "OUTCOME_UNKNOWN\n", ended.stderr
    store = SqliteStore(path, CLOCK)
    assert store.job("before") is not None
    assert store.job("doubtful") is not None, "the sync has failed after the data were written"
    store.close()
