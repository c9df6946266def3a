"""Opening the file: the right library, the right journal, the right permissions, the right schema."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from tallystick import crash
from tallystick.core.chain import line_hash
from tallystick.errors import (
    OutcomeUnknown,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    VulnerableSqlite,
)
from tallystick.store.sql.schema import schema
from tallystick.store.sqlite.file import one_library
from tallystick.store.sqlite.file.backup import COPY_ID
from tallystick.store.sqlite.file.turnstile import Turnstile
from tallystick.store.sqlite.statements import TABLES, migrations, sql

# Versions from 3.7.0 up to here can corrupt a WAL database when a checkpoint meets a writer.
_LAST_VULNERABLE = (3, 51, 2)
_APPLICATION_ID = 0x7A11_1E57 & 0x7FFF_FFFF
_BUSY_MS = 10_000

# The library keeps prepared statements in a ring and moves on by one place whenever one is run. With fewer
# places than a flush runs statements, every flush would prepare all of them again. It has no more than these.
WRITERS_STATEMENTS = 512
_OTHERS_STATEMENTS = 100

CREATED = crash.declare("sqlite.create.after", "an empty file is there and has no schema")
BEFORE_MIGRATE = crash.declare("sqlite.migrate.before", "a new schema is about to be written")
MIGRATED = crash.declare("sqlite.migrate.written", "a new schema is written and not durable")
AFTER_MIGRATE = crash.declare("sqlite.migrate.after", "a new schema is durable")


def connect(
    path: Path, *, create: bool, synchronous: str = "FULL", statements: int = _OTHERS_STATEMENTS
) -> apsw.Connection:
    """Open a connection with our settings, creating the file (0600) only if asked to.

    Without `create` a file that holds nothing of ours is left as it is: it may be another program's.
    """
    refuse_vulnerable(apsw.sqlite_lib_version())
    if not path.exists():
        if not create:
            raise StoreMissing(
                f"there is no database at {path}; submit a job or start a worker to create it", path=str(path)
            )
        _create(path)
    one_library.claim_file(path)
    try:
        connection = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=statements
        )
        if connection.readonly("main"):
            # To read it would leave a log and an index behind that no process may write, for good.
            raise apsw.ReadOnlyError("the file is read-only")
        connection.set_busy_timeout(_BUSY_MS)
        # Before anything is changed: a file of another program keeps its journal mode too.
        if not _version(connection, path, _newest()) and not create:
            connection.close()
            raise StoreMissing(
                f"{path} holds no tables of Tallystick; submit a job or start a worker to create them",
                path=str(path),
            )
        journal = _write_ahead(connection, path)
        connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'FULL' else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        # Without this a statement that compares a column of a partial index with a parameter is prepared
        # again for every row, because the value might let another plan be chosen.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.execute("PRAGMA recursive_triggers = ON")
        # What two flushes touch fits a small cache, which stays in the processor's own. A commit that has
        # split a page walks all of it; what a claim comes back to later is read from the log for less.
        connection.execute("PRAGMA cache_size = -4096")
        # The committer checkpoints between flushes; never inside a transaction of the user.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except apsw.Error as error:
        raise translated(error, path) from error
    if journal != "wal":
        raise StoreError(
            f"{path} is on a file system without shared memory locks ({journal}); use a local disk",
            path=str(path),
        )
    one_library.remember(connection, path)
    return connection


def _write_ahead(connection: apsw.Connection, path: Path) -> str:
    """Return the journal mode after asking for a write-ahead log, one process at a time.

    Two that change it at once would both be refused at once, whatever their patience.
    """
    if connection.execute("PRAGMA journal_mode").get == "wal":
        return "wal"
    with closing(Turnstile(path)) as turnstile, turnstile:
        return str(connection.execute("PRAGMA journal_mode = WAL").get)


def disconnect(connection: apsw.Connection) -> None:
    """Close a connection; when it was the last one, other libraries may have the file again."""
    connection.close()
    one_library.forget(connection)


def migrate(connection: apsw.Connection, path: Path, turnstile: Turnstile) -> bool:
    """Bring the schema up to date, in one transaction, one process at a time; refuse a newer one.

    Return whether it was not.
    """
    steps = migrations()
    newest = steps[-1][0]
    if _version(connection, path, newest) == newest:
        return False
    with turnstile:
        try:
            connection.execute("BEGIN IMMEDIATE")
            done = _version(connection, path, newest)
            crash.point(BEFORE_MIGRATE)
            # For migrations that make a chain of rows: the hash before, then the fields of a line.
            connection.create_scalar_function("line_hash", lambda before, *fields: line_hash(fields, before))
            later = [text for version, _name, text in steps if version > done]
            for text in later if done else [schema("sqlite")]:
                connection.execute(text)
            connection.execute(f"PRAGMA user_version = {newest:d}")
            if not is_copy(connection):
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID:d}")
            crash.point(MIGRATED)
            connection.execute("COMMIT")
            crash.point(AFTER_MIGRATE)
        except apsw.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise translated(error, path) from error
    return True


def is_copy(connection: apsw.Connection) -> bool:
    """Tell whether this file is a copy that was not opened before."""
    return bool(connection.execute("PRAGMA application_id").get == COPY_ID)


def call_original(connection: apsw.Connection) -> None:
    """Let a copy be a file like any other, with the turn to write held."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID:d}")


def forget_statistics(connection: apsw.Connection) -> None:
    """Drop what ANALYZE has found out about our tables, with the turn to write held; the user's own stay.

    A user may have run it when there was one job. To look up a list of jobs would then be to walk through
    all of them, of which there may be a million later.
    """
    ours = msgspec.json.encode(TABLES).decode()
    kept = [table for (table,) in connection.execute(sql("statistics"))]
    if kept:
        for table in kept:
            connection.execute(sql(f"forget_{table}"), (ours,))
        connection.execute("ANALYZE sqlite_schema")


def refuse_vulnerable(version: str) -> None:
    """Refuse a SQLite that is known to lose data the way we use it."""
    number = tuple(int(part) for part in version.split("."))
    if number <= _LAST_VULNERABLE:
        raise VulnerableSqlite(
            f"SQLite {version} can corrupt a WAL database; install the apsw wheel, it brings a newer one",
            version=version,
        )


def translated(error: apsw.Error, path: Path) -> StoreError:
    """Return our error for one of SQLite's, saying what to do; a store error is never the job's error."""
    fields = {"path": str(path), "sqlite": str(error)}
    match error:
        case apsw.FullError():
            return StoreFull(f"no space left for {path}; nothing was lost, free some and go on", **fields)
        case apsw.CantOpenError() if path.is_dir():
            return StoreReadOnly(f"{path} is a folder; name a file in it", **fields)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreReadOnly(
                f"{path} cannot be written; check the owner and mode of the file and its folder", **fields
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{path} is locked by a program that does not take turns; close it", **fields)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(
                f"{path} is not an intact SQLite database; restore it from a backup", **fields
            )
        case _:
            return StoreError(f"{path}: {error}", **fields)


def in_doubt(error: apsw.IOError, path: Path) -> OutcomeUnknown:
    """Return our error for a COMMIT that the disk refused: it may be there when the file is recovered."""
    return OutcomeUnknown(
        f"{path}: the disk failed while this was made durable ({error}); look before you repeat it",
        path=str(path),
        sqlite=str(error),
    )


def _create(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return  # another process was faster, which is as good
    except FileNotFoundError as error:
        raise StoreReadOnly(
            f"{path} cannot be created: there is no folder {path.parent}; make it first", path=str(path)
        ) from error
    except OSError as error:
        raise StoreReadOnly(f"{path} cannot be created: {error.strerror}", path=str(path)) from error
    crash.point(CREATED)


def begin_to_write(connection: apsw.Connection, path: Path) -> None:
    """Begin a transaction, unless a newer version has changed the schema since the file was opened.

    What this version writes by its own rules would not fit those of the newer one.
    """
    connection.execute("BEGIN IMMEDIATE")
    _refuse_newer(connection, path, _newest())


def _version(connection: apsw.Connection, path: Path, newest: int) -> int:
    application = connection.execute("PRAGMA application_id").get
    version = connection.execute("PRAGMA user_version").get
    if application not in (0, _APPLICATION_ID, COPY_ID) or (version and not application):
        raise StoreCorrupt(f"{path} belongs to another program; choose another file", path=str(path))
    _refuse_newer(connection, path, newest)
    return int(version)


def _refuse_newer(connection: apsw.Connection, path: Path, newest: int) -> None:
    version = connection.execute("PRAGMA user_version").get
    if version > newest:
        raise StoreTooNew(
            f"{path} has schema {version}, this Tallystick knows up to {newest}; "
            "upgrade the package and start this process again",
            path=str(path),
        )


def _newest() -> int:
    return migrations()[-1][0]
