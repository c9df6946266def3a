"""One file, one SQLite library in a process: the rule, and what is lost without it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.clock import VirtualClock
from tallystick.errors import TwoLibraries
from tallystick.store.sqlite.store import SqliteStore
from tests.store.sqlite_subject import SqliteSubject, child

# A process holds a transaction through one library; a look through the other one drops its locks.
UNGUARDED = """
import sqlite3, sys
import apsw
path = sys.argv[1]
held = apsw.Connection(path)
held.execute("PRAGMA synchronous = OFF")
held.execute("BEGIN IMMEDIATE")
held.execute("INSERT INTO acknowledged VALUES ('first')")
look = sqlite3.connect(path)
look.execute("SELECT count(*) FROM jobs").fetchall()
look.close()
sys.stdout.write("looked\\n"); sys.stdout.flush()
sys.stdin.readline()
held.execute("COMMIT")
sys.stdout.write("acknowledged\\n"); sys.stdout.flush()
"""

RIVAL = """
import sys
import apsw
rival = apsw.Connection(sys.argv[1])
rival.set_busy_timeout(300)
rival.execute("PRAGMA synchronous = OFF")
rival.execute("BEGIN IMMEDIATE")
rival.execute("INSERT INTO acknowledged VALUES ('second')")
rival.execute("COMMIT")
"""

GUARDED = """
import sqlite3, sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.errors import TwoLibraries
from tallystick.store.sqlite.store import SqliteStore
store = SqliteStore(Path(sys.argv[1]), SystemClock())
with store.transaction() as transaction:
    transaction.execute("INSERT INTO acknowledged VALUES ('first')")
    try:
        sqlite3.connect(sys.argv[1]).close()
    except TwoLibraries as error:
        assert "app.connect()" in str(error)
    else:
        raise SystemExit("sqlite3 was let in")
    sys.stdout.write("looked\\n"); sys.stdout.flush()
    sys.stdin.readline()
sys.stdout.write("acknowledged\\n"); sys.stdout.flush()
"""


def written_by_two(path: Path, script: str) -> tuple[bool, set[str]]:
    """Let one process look at the file inside its transaction while another one writes.

    Return whether the rival was let in, and the rows that are there in the end.
    """
    store = SqliteStore(path, VirtualClock())
    with store.transaction() as transaction:
        transaction.execute("CREATE TABLE acknowledged (who TEXT)")
    store.close()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], **pipes)
    try:
        assert holder.stdout.readline() == "looked\n", holder.communicate()
        rival = child(RIVAL, path)
        out, errors = holder.communicate("go\n", timeout=30)
        assert out == "acknowledged\n", errors
    finally:
        holder.kill()
        holder.wait()
    store = SqliteStore(path, VirtualClock())
    with store.transaction() as transaction:
        rows = {who for (who,) in transaction.execute("SELECT who FROM acknowledged")}
        assert transaction.execute("SELECT * FROM pragma_integrity_check") == [("ok",)]
    store.close()
    return rival.returncode == 0, rows


def test_without_the_rule_an_acknowledged_row_is_lost_and_the_database_looks_intact(tmp_path: Path):
    """The negative control: two processes wrote, both were told that it is durable, one row is there."""
    let_in, rows = written_by_two(tmp_path / "shop.db", UNGUARDED)
    assert let_in
    assert len(rows) == 1


def test_with_the_rule_the_second_library_is_refused_and_nothing_is_lost(tmp_path: Path):
    let_in, rows = written_by_two(tmp_path / "shop.db", GUARDED)
    assert not let_in, "the rival must have waited for the lock"
    assert rows == {"first"}


@pytest.mark.parametrize(
    "spelled",
    [
        str,
        lambda path: path,
        lambda path: str(path).encode(),
        lambda path: f"file:{path}?mode=ro",
        lambda path: f"{path.parent}/./{path.name}",
        lambda path: str(path.parent / "linked.db"),
        lambda path: str(path.parent / "hard.db"),
    ],
    ids=["text", "path", "bytes", "uri", "detour", "symlink", "hard link"],
)
def test_sqlite3_is_refused_however_the_file_is_spelled(subject: SqliteSubject, spelled):
    (subject.path.parent / "linked.db").symlink_to(subject.path)
    (subject.path.parent / "hard.db").hardlink_to(subject.path)
    with pytest.raises(TwoLibraries, match=r"app\.connect"):
        sqlite3.connect(spelled(subject.path), uri=True)


def test_other_files_are_free_for_sqlite3(subject: SqliteSubject, tmp_path: Path):
    for path in (tmp_path / "own.db", ":memory:"):
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        connection.close()


def test_a_closed_store_frees_the_file_for_sqlite3(tmp_path: Path):
    path = tmp_path / "shop.db"
    first, second = SqliteStore(path, VirtualClock()), SqliteStore(path, VirtualClock())
    first.close()
    with pytest.raises(TwoLibraries):
        sqlite3.connect(path)
    second.close()
    sqlite3.connect(path).close()


def test_a_file_that_sqlite3_holds_is_refused(tmp_path: Path):
    path = tmp_path / "shop.db"
    SqliteStore(path, VirtualClock()).close()
    theirs = sqlite3.connect(path)
    theirs.execute("SELECT count(*) FROM jobs")
    with pytest.raises(TwoLibraries, match="already open"):
        SqliteStore(path, VirtualClock())
    theirs.close()
    SqliteStore(path, VirtualClock()).close()
