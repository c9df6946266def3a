"""Opening a file: the right library, the right owner, the right schema, and nothing left behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from tallystick import crash
from tallystick.clock import VirtualClock
from tallystick.errors import (
    BadInput,
    StoreCorrupt,
    StoreError,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    VulnerableSqlite,
)
from tallystick.store.opening import open_store
from tallystick.store.sqlite.file import connection as connections
from tallystick.store.sqlite.file.turnstile import Turnstile
from tallystick.store.sqlite.statements import migrations
from tallystick.store.sqlite.store import SqliteStore
from tests.old_files import sqlite_file
from tests.store.sqlite_subject import child

OPEN = """
import sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.store.sqlite.store import SqliteStore
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
SqliteStore(Path(sys.argv[1]), SystemClock()).close()
"""


def opened(path: Path, **options: bool) -> SqliteStore:
    return SqliteStore(path, VirtualClock(), **options)


def schema_of(path: Path) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    rows = list(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"))
    versions = [(connection.execute(f"PRAGMA {name}").get,) for name in ("user_version", "application_id")]
    connection.close()
    return rows + versions


def descriptors() -> list[str]:
    return sorted(str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())


@pytest.mark.parametrize("version", ["3.7.0", "3.40.1", "3.51.2"])
def test_a_sqlite_that_loses_data_is_refused(monkeypatch, tmp_path: Path, version: str):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with pytest.raises(VulnerableSqlite, match=version):
        opened(tmp_path / "shop.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["3.51.3", "3.53.0", "3.54.1", "4.0.0"])
def test_a_sqlite_with_the_repair_is_welcome(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    opened(tmp_path / "shop.db").close()
    assert (tmp_path / "shop.db").exists()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "shop.db"
    opened(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="9999"):
        opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("pragma", ["application_id = 1234", "user_version = 7"])
def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path, pragma: str):
    path = tmp_path / "theirs.db"
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA {pragma}; CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        opened(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs.db"]


def test_a_table_of_the_same_name_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "theirs.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE jobs (x)")
    connection.close()
    with pytest.raises(StoreError, match="jobs"):
        opened(path)
    assert [row[1] for row in schema_of(path)[:-2]] == ["jobs"]


def test_the_users_own_tables_may_be_in_the_file_before_us(tmp_path: Path):
    path = tmp_path / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE orders (x); INSERT INTO orders VALUES (1)")
    connection.close()
    store = opened(path)
    with store.transaction() as transaction:
        assert transaction.execute("SELECT x FROM orders") == [(1,)]
    store.close()


@pytest.mark.parametrize(
    "content",
    [b"no database, but longer than a header of a hundred bytes " * 4, b"SQLite format 3\0" + b"\xff" * 200],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        opened(path)
    assert path.read_bytes() == content


def test_looking_creates_nothing(tmp_path: Path):
    with pytest.raises(StoreMissing):
        opened(tmp_path / "shop.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_the_files(tmp_path: Path):
    before = os.umask(0)
    try:
        store = opened(tmp_path / "shop.db")
        with store.transaction() as transaction:
            transaction.execute("CREATE TABLE mine (x)")
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(before)
    suffixes = ("", "-wal", "-shm", "-gate", "-floor")
    assert modes == dict.fromkeys((f"shop.db{suffix}" for suffix in suffixes), 0o600)


def test_a_lock_file_is_not_followed_elsewhere(tmp_path: Path):
    (tmp_path / "shop.db-gate").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreReadOnly):
        opened(tmp_path / "shop.db")
    assert not (tmp_path / "elsewhere").exists()


def test_migrations_are_numbered_without_gap():
    """The first schema is that of the oldest files; there is no way to it, only from it."""
    assert [version for version, _name, _text in migrations()] == list(range(2, len(migrations()) + 2))


def test_an_old_file_comes_as_far_in_small_steps_as_in_one(tmp_path: Path, monkeypatch):
    (tmp_path / "small").mkdir()
    steps, replayed, at_once = migrations(), sqlite_file(tmp_path / "small"), sqlite_file(tmp_path)
    for known in range(1, len(steps) + 1):
        monkeypatch.setattr(connections, "migrations", lambda known=known: steps[:known])
        connection = connections.connect(replayed, create=True)
        with closing(Turnstile(replayed)) as turnstile:
            assert connections.migrate(connection, replayed, turnstile)
        connections.disconnect(connection)
    opened(at_once).close()
    assert schema_of(replayed) == schema_of(at_once)


def test_an_older_file_is_brought_up_to_date_and_an_older_program_then_refuses_it(
    tmp_path: Path, monkeypatch
):
    path, steps = tmp_path / "shop.db", migrations()
    opened(path).close()
    following = (len(steps) + 2, "next.sql", "CREATE TABLE later (x TEXT) STRICT")
    with monkeypatch.context() as patched:
        patched.setattr(connections, "migrations", lambda: [*steps, following])
        opened(path).close()
    assert "later" in [row[1] for row in schema_of(path)[:-2]]
    with pytest.raises(StoreTooNew):
        opened(path)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch):
    path, steps = tmp_path / "shop.db", migrations()
    opened(path).close()
    before = schema_of(path)
    broken = (len(steps) + 2, "next.sql", "CREATE TABLE later (x TEXT) STRICT; CREATE TABLE jobs (x)")
    with monkeypatch.context() as patched:
        patched.setattr(connections, "migrations", lambda: [*steps, broken])
        with pytest.raises(StoreError):
            opened(path)
    assert schema_of(path) == before
    opened(path).close()


@pytest.mark.parametrize("point", [connections.BEFORE_MIGRATE, connections.AFTER_MIGRATE])
def test_a_kill_in_the_middle_of_a_migration_is_completed_by_the_next_opening(tmp_path: Path, point: str):
    script = OPEN.replace("sys.stdin.readline()", "")
    killed = child(script, tmp_path / "shop.db", **{crash.VARIABLE: point})
    assert killed.returncode == -9
    opened(tmp_path / "shop.db").close()
    opened(tmp_path / "fresh.db").close()
    assert schema_of(tmp_path / "shop.db") == schema_of(tmp_path / "fresh.db")


@pytest.mark.slow
def test_processes_that_create_at_once_all_succeed(tmp_path: Path):
    for attempt in range(3):
        path = tmp_path / f"shop-{attempt}.db"
        command = [sys.executable, "-c", OPEN, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        creators = [subprocess.Popen(command, **pipes) for _ in range(4)]
        for creator in creators:
            assert creator.stdout.readline() == "ready\n"
        for creator in creators:
            creator.stdin.write("go\n")
            creator.stdin.flush()
        errors = [creator.communicate(timeout=60)[1] for creator in creators]
        assert [creator.returncode for creator in creators] == [0] * 4, errors
    opened(tmp_path / "fresh.db").close()
    assert schema_of(tmp_path / "shop-0.db") == schema_of(tmp_path / "fresh.db")


def test_a_store_that_opens_closes_or_refuses_leaves_no_descriptor(tmp_path: Path):
    path = tmp_path / "shop.db"
    opened(path).close()
    before = descriptors()
    store = opened(path)
    with store.transaction() as transaction:
        transaction.execute("SELECT 1")
    store.close()
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(StoreTooNew):
        opened(path)
    (tmp_path / "other.db-floor").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreReadOnly):
        opened(tmp_path / "other.db")
    assert descriptors() == before


@pytest.mark.parametrize(
    "url",
    [
        "shop.db",
        "mysql://x/y",
        "sqlite://shop.db",
        "sqlite:///",
        "sqlite:///a.db?sync=OFF",
        "sqlite:///a.db?synchronous=OFF",
    ],
)
def test_an_address_that_names_no_file_is_refused(url: str):
    with pytest.raises(BadInput):
        open_store(url, VirtualClock(), create=True)


@pytest.mark.parametrize(("query", "level"), [("", 2), ("?synchronous=FULL", 2), ("?synchronous=normal", 1)])
def test_every_flush_reaches_the_disk_unless_the_user_says_otherwise(tmp_path: Path, query: str, level: int):
    store = open_store(f"sqlite:///{tmp_path}/shop.db{query}", VirtualClock(), create=True)
    assert store._writer.execute("PRAGMA synchronous").get == level  # type: ignore[attr-defined]  # SQLite's own
    assert store._writer.execute("PRAGMA journal_mode").get == "wal"  # type: ignore[attr-defined]  # SQLite's own
    store.close()


@pytest.mark.parametrize("scheme", ["postgresql", "azure"])
def test_only_a_missing_package_is_called_a_missing_extra(monkeypatch: pytest.MonkeyPatch, scheme: str):
    module, package = {"postgresql": ("postgres", "psycopg"), "azure": ("azure", "azure")}[scheme]
    monkeypatch.delitem(sys.modules, f"tallystick.store.{module}.store", raising=False)
    for missing, error in ((package, BadInput), ("a_package_of_our_own", ModuleNotFoundError)):

        def find_spec(name: str, *_about: object, missing: str = missing) -> None:
            if name == f"tallystick.store.{module}.store":
                raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

        finder = SimpleNamespace(find_spec=find_spec)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "meta_path", [finder, *sys.meta_path])
            with pytest.raises(error):
                open_store(f"{scheme}://localhost/shop", VirtualClock(), create=False)
