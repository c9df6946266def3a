"""How a SQLite file shows itself to people who check it."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import apsw

from tallystick.clock import Clock, SystemClock
from tallystick.core.limits import MIB
from tallystick.store.inspection import Health, Inspection, WorkerLeases
from tallystick.store.sql.effects import DoubtReads
from tallystick.store.sql.reads import Reads
from tallystick.store.sqlite.file.turnstile import Holder, holder
from tallystick.store.sqlite.statements import sql

WAL_BYTES_WARN: Final = 64 * MIB
# A flush takes milliseconds and a `tx` a second; only a transaction of a program's own may hold on longer.
WRITER_MS_MAX: Final = 1_000

_MOMENT_SECONDS: Final = 0.1

_SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")
_STOPPED: Final = ("T", "t")


T = TypeVar("T")
Read: TypeAlias = Callable[[str, Sequence[object]], list[Any]]


class AtOnce(Protocol):
    """How several reads see one instant."""

    def __call__(self, ask: Callable[[Read], T]) -> T:
        """Call a function with a way to read."""
        ...


class SqliteInspection(Reads, DoubtReads):
    """The reads of a check, on the connection that reads."""

    def __init__(self, path: Path, read: Read, clock: Clock, at_once: AtOnce | None = None) -> None:
        """Look at the file at `path` with the store's own ways to read: one statement, or several at once."""
        self._path = path
        self._clock = clock
        self._read = read
        self._at_once = at_once

    def at_once(self, ask: Callable[[Inspection], T]) -> T:
        """Let a function read several things of one instant, in a transaction that only reads."""
        if self._at_once is None:
            return ask(self)
        return self._at_once(lambda read: ask(SqliteInspection(self._path, read, self._clock)))

    def health(self, jobs_max: int | None = None) -> Health:  # noqa: ARG002 (it looks at no job)
        """Examine the file, its log, its permissions, and which process writes to it now."""
        status = self._path.stat()
        wal = self._path.with_name(f"{self._path.name}-wal")
        wal_bytes = wal.stat().st_size if wal.exists() else 0
        held = _holding(self._path)
        pid = None if held is None else held.pid or None
        state = process_state(pid)
        mode = stat.S_IMODE(status.st_mode)
        synchronous = _SYNCHRONOUS[self._pragma("PRAGMA synchronous")]
        facts = {
            "path": str(self._path),
            "size_bytes": status.st_size,
            "wal_bytes": wal_bytes,
            "mode": f"{mode:04o}",
            "sqlite_version": apsw.sqlite_lib_version(),
            "journal_mode": self._pragma("PRAGMA journal_mode"),
            "synchronous": synchronous,
            "schema_version": self._pragma("PRAGMA user_version"),
            "writer_pid": pid,
            "writer_state": state,
            "writer_seconds": None if held is None else _held_ms(held) // 1000,
        }
        problems, warnings = [], []
        if held is not None and (state == "stopped" or _held_ms(held) > WRITER_MS_MAX):
            problems.append(self._blocked_by(held, state))
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            warnings.append(
                f"others than the owner may use the file (mode {mode:04o}); chmod 600 keeps it private"
            )
        if wal_bytes > WAL_BYTES_WARN:
            warnings.append(
                f"the write-ahead log has {wal_bytes // MIB} MiB; "
                "a program that reads without end keeps it from shrinking"
            )
        if synchronous != "FULL":
            warnings.append(f"synchronous={synchronous}: a power cut may lose the newest transactions")
        return Health(facts, tuple(problems), tuple(warnings))

    def _blocked_by(self, held: Holder, state: str | None) -> str:
        """Say which process keeps all others from writing, since when, and what to do about it."""
        pid, seconds = held.pid, _held_ms(held) / 1000
        if state == "stopped":
            return (
                f"process {pid} is stopped inside a transaction, and no other can write; "
                f"let it go on with `kill -CONT {pid}` or end it"
            )
        who, remedy = f"process {pid}", "let its transaction end, or end the process; what it began is undone"
        if not pid or state == "gone":
            if pid:
                who += " (gone, or in another container) or one that it forked"
            else:
                who = "a process that could not write down its pid"
            remedy = f"`fuser {self._path}-floor` names those that may be meant; end the one that hangs"
        return f"{who} has held the right to write for {seconds:.1f} s, and no other can write; {remedy}"

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return the leases of live attempts by worker, those that lost most first."""
        return [WorkerLeases._make(row) for row in self.rows("leases", (*self.lease_clock(), limit))]

    def running_in_queues(self, limit: int) -> dict[str, int]:
        """Return how many jobs of each queue run, in so many leases at most."""
        return dict(self.rows("running_in_queues", (*self.lease_clock(), limit)))

    def lease_clock(self) -> tuple[str, int]:
        """Return the boot of this machine and how long it has lasted."""
        return self._clock.epoch(), self._clock.boot_ms()

    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return self._read(sql(name), parameters)

    def _pragma(self, question: str) -> Any:  # noqa: ANN401 (a number or a word)
        return self._read(question, ())[0][0]


def _held_ms(held: Holder) -> int:
    return max(0, SystemClock().wall_ms() - held.since_ms)


def _holding(path: Path) -> Holder | None:
    """Return which process writes; a long time is believed when it is still the same one after a moment.

    A process that has just come may not have written its pid yet, and looks like the last one, of long ago.
    """
    held = holder(path)
    if held is not None and _held_ms(held) > WRITER_MS_MAX:
        threading.Event().wait(_MOMENT_SECONDS)
        held = holder(path)
    return held


def process_state(pid: int | None) -> str | None:
    """Return whether a process is `running`, `stopped` or `gone`; None when that cannot be known."""
    if pid is None or not Path("/proc/self/stat").exists():
        return None
    try:
        # The name of the program stands in parentheses and may contain anything, also a parenthesis.
        letter = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    return "stopped" if letter in _STOPPED else "running"
