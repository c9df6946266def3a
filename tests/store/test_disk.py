"""A full disk, a file that cannot be written, a file that is gone: a clear error, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tallystick.clock import VirtualClock
from tallystick.engine.committer import Committer
from tallystick.errors import StoreFull, StoreGone, StoreReadOnly
from tallystick.store.sqlite import store as stores
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    submission,
)
from tallystick.testing.conformance.promises.loans import Borrower, effect
from tests.store.sqlite_subject import SqliteSubject, child

NOBODY = 65_534
BIG = json.dumps("x" * 50_000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, where the system lets us mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(["mount", *options], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system does not let us mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def test_a_full_disk_is_a_clear_error_and_nothing_acknowledged_is_lost(small_disk: Path):
    clock = VirtualClock()
    store = SqliteStore(small_disk / "shop.db", clock)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 1_000_000)
    acknowledged: list[str] = []

    def submit_until_full() -> None:
        for number in range(200):
            wish = submission(clock, payload=BIG, key=f"key-{number}")
            done(store, wish)
            acknowledged.append(wish.job.job_id)

    def fill_a_transaction() -> None:
        with store.transaction() as transaction:
            transaction.apply((submission(clock, payload=BIG),))
            transaction.execute("CREATE TABLE big AS SELECT zeroblob(2000000)")

    with pytest.raises(StoreFull, match="free some"):
        submit_until_full()
    assert acknowledged
    with pytest.raises(StoreFull):
        store.apply([(submission(clock, payload=BIG),), (submission(clock, payload=BIG),)])
    with pytest.raises(StoreFull):
        fill_a_transaction()
    assert store.counts() == {"QUEUED": len(acknowledged)}
    store._pages = stores.CHECKPOINT_PAGES
    store.checkpoint()
    filler.unlink()
    again = submission(clock, payload=BIG, key=f"key-{len(acknowledged)}")
    assert done(store, again) is None, "the refused reservation must not have stayed"
    acknowledged.append(again.job.job_id)
    listed = store.jobs(tenant_id="default", states=(), handler=None, after=None, limit=1_000)
    assert {(job.job_id, job.payload) for job in listed} == {(job_id, BIG) for job_id in acknowledged}
    (held,) = claimed(store, claim(1))
    done(store, finish(held, clock))
    for job_id in acknowledged:
        check_chain(store.history(job_id))
    store.close()
    intact = apsw.Connection(str(small_disk / "shop.db"))
    assert intact.execute("PRAGMA integrity_check").get == "ok"
    intact.close()


def test_everybody_in_a_flush_learns_of_the_full_disk_and_the_committer_goes_on(small_disk: Path):
    clock = VirtualClock()
    store = SqliteStore(small_disk / "shop.db", clock)
    committer = Committer(store, after_flush=store.checkpoint)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * shutil.disk_usage(small_disk).free)
    outcomes = committer.call_all([(submission(clock, payload=BIG),) for _ in range(10)])
    assert {type(outcome) for outcome in outcomes} == {StoreFull}
    filler.unlink()
    assert committer.call((submission(clock, payload=BIG),)) is None
    assert store.counts() == {"QUEUED": 1}
    committer.close()
    store.close()


def test_a_disk_that_became_read_only_is_a_clear_error(small_disk: Path):
    SqliteStore(small_disk / "shop.db", VirtualClock()).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreReadOnly):
        SqliteStore(small_disk / "shop.db", VirtualClock())
    with pytest.raises(StoreReadOnly):
        SqliteStore(small_disk / "new.db", VirtualClock())


WRITE = """
import os, sys, tempfile
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.errors import StoreError
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import done, submission

def write(path):
    store = SqliteStore(path, SystemClock())
    done(store, submission(SystemClock()))
    store.close()

# Everything is imported and read before the powers of an administrator are given up.
with tempfile.TemporaryDirectory() as folder:
    write(Path(folder, "warm.db"))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    write(Path(sys.argv[1]))
except StoreError as error:
    sys.stdout.write(error.code)
"""


@pytest.fixture
def folder_of_a_user() -> Iterator[Path]:
    """A folder of somebody who is no administrator, with a database in it."""
    folder = Path(tempfile.mkdtemp(prefix="tallystick-"))
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    assert write(folder / "shop.db") == ""
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def write(path: Path) -> str:
    """Submit one job as an ordinary user and return the code of the error, if any."""
    ended = child(WRITE, path)
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_a_clear_error(folder_of_a_user: Path):
    folder_of_a_user.chmod(0o500)
    assert write(folder_of_a_user / "new.db") == "STORE_READ_ONLY"
    assert write(folder_of_a_user / "shop.db") == "STORE_READ_ONLY"
    folder_of_a_user.chmod(0o700)
    assert write(folder_of_a_user / "shop.db") == ""


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_a_clear_error(folder_of_a_user: Path):
    path = folder_of_a_user / "shop.db"
    path.chmod(0o400)
    assert write(path) == "STORE_READ_ONLY"
    path.chmod(0o600)
    assert write(path) == ""


def test_lock_files_of_somebody_else_are_a_clear_error(folder_of_a_user: Path):
    (folder_of_a_user / "shop.db-gate").chmod(0o000)
    assert write(folder_of_a_user / "shop.db") == "STORE_READ_ONLY"


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_file_that_is_gone_is_a_clear_error_and_no_new_one_appears(subject: SqliteSubject, how: str):
    held = held_job(subject.store, subject.clock)
    if how == "deleted":
        subject.path.unlink()
    else:
        subject.path.rename(subject.path.with_name("elsewhere.db"))
    if how == "replaced":
        other = apsw.Connection(str(subject.path))
        other.execute("CREATE TABLE theirs (x)")
        other.close()
    before = {
        entry.name: entry.read_bytes() for entry in subject.path.parent.iterdir() if "shm" not in entry.name
    }
    waiting = Borrower(held, effect(subject, held, "never"))
    with pytest.raises(StoreGone):
        subject.store.apply([(submission(subject.clock),), (waiting.request,)])
    with pytest.raises(StoreGone), subject.store.transaction():
        raise AssertionError("never lent")
    after = {
        entry.name: entry.read_bytes() for entry in subject.path.parent.iterdir() if "shm" not in entry.name
    }
    assert after == before
    waiting.join()
    if how == "moved":
        subject.path.with_name("elsewhere.db").rename(subject.path)
        done(subject.store, submission(subject.clock))
        assert subject.store.counts() == {"IN_PROGRESS": 1, "QUEUED": 1}
