"""A fair lock between processes: two advisory locks in a row.

SQLite's own lock goes to the process that polls at the right moment, so a busy process starves the others; a
starved heartbeat is an expired lease. Here a writer first passes the gate, then waits for the floor with
the gate still in its hand, and opens the gate only when it has the floor. So at most one process waits at
the floor, the others wait at the gate, and the one that just left the floor has to queue at the gate like
all the others.

The system cannot be told how long to wait for such a lock. So where one is not free a thread of its own
stands in the queue, and the writer stops waiting for it when that takes too long.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

from tallystick.clock import SystemClock
from tallystick.core.durations import duration_ms
from tallystick.defaults import BUSY
from tallystick.errors import StoreBusy, StoreReadOnly

BUSY_MS: Final = duration_ms(BUSY)


class Turnstile:
    """The right to write to one file: one holder at a time, in turn. Its locks are on files of their own."""

    def __init__(self, database: Path, *, busy_ms: int = BUSY_MS) -> None:
        """Open both lock files beside the database; they stay, empty but for the holder's pid."""
        self._database = database
        self._busy_ms = busy_ms
        self._signature = b"%-20d\n" % os.getpid()
        self._stand_in: _StandIn | None = None
        self._gate = _open(database.with_name(f"{database.name}-gate"))
        try:
            self._floor = _open(database.with_name(f"{database.name}-floor"))
        except BaseException:
            os.close(self._gate)
            raise

    def __enter__(self) -> None:
        """Wait for our turn; if that is cut short, nothing stays held."""
        try:
            if not self._enter_at_once():
                self._stand_in = self._stand_in or _StandIn(self._gate, self._floor)
                if not self._stand_in.comes_through(self._busy_ms / 1000):
                    raise self._busy()
            self._sign()
        except BaseException:
            # A thread that is interrupted cannot know what it held already. To give up what was not held does
            # nothing, and one that stands in the queue gives up by itself what it comes to hold.
            if self._stand_in is None or not self._stand_in.stands:
                fcntl.flock(self._gate, fcntl.LOCK_UN)
                fcntl.flock(self._floor, fcntl.LOCK_UN)
            raise

    def _enter_at_once(self) -> bool:
        """Take both locks if they are free; if not, hold nothing but perhaps the gate."""
        if self._stand_in is not None and self._stand_in.stands:
            return False  # what it takes is ours, and it may give that back at any moment
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._floor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return True

    def _busy(self) -> StoreBusy:
        held = holder(self._database)
        who, seconds = "other processes", self._busy_ms / 1000
        if held is not None and held.pid:
            seconds = max(0, SystemClock().wall_ms() - held.since_ms) / 1000
            who = f"process {held.pid}"
        return StoreBusy(
            f"{self._database}: {who} held the right to write for {seconds:.1f} s, and this process waited "
            f"{self._busy_ms / 1000:g} s for it; end that transaction, or see tally doctor",
            path=str(self._database),
            pid=None if held is None else held.pid,
            held_ms=round(seconds * 1000),
        )

    def _sign(self) -> None:
        """Write down which process holds the floor, for people who look; a failure stops no writer."""
        try:
            os.pwrite(self._floor, self._signature, 0)
        except OSError:
            # No name is better than that of the last holder, which would be blamed.
            with suppress(OSError):
                os.ftruncate(self._floor, 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the floor to the next."""
        self.leave()

    def leave(self) -> None:
        """Leave the floor to the next; from any thread, and once more does nothing."""
        fcntl.flock(self._floor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files, which also gives up what is held."""
        if self._stand_in is not None:
            self._stand_in.dismiss()
        try:
            os.close(self._floor)
        finally:
            os.close(self._gate)


class _StandIn:
    """A thread that stands in the queue for a turnstile, and gives its turn back if it is no longer wanted.

    It has descriptors of its own of the same open files: a lock that it takes is the turnstile's, and what
    the turnstile has closed meanwhile is never used.
    """

    def __init__(self, gate: int, floor: int) -> None:
        self._gate, self._floor = os.dup(gate), os.dup(floor)
        self._changed = threading.Condition()
        self._wanted = self._standing = self._through = self._over = False
        threading.Thread(target=self._run, name="tally-turnstile", daemon=True).start()

    @property
    def stands(self) -> bool:
        """Tell whether it is in the queue."""
        with self._changed:
            return self._standing

    def comes_through(self, seconds: float) -> bool:
        """Wait for the turn; True when the floor is ours, False when that takes too long."""
        with self._changed:
            self._wanted = self._standing = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._through, seconds)
            finally:
                self._wanted = self._through = False

    def dismiss(self) -> None:
        """End the thread, when its turn has come if it stands in the queue."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _run(self) -> None:
        while self._is_sent():
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            fcntl.flock(self._floor, fcntl.LOCK_EX)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            with self._changed:
                self._standing = False
                if self._wanted:
                    self._through = True
                    self._changed.notify_all()
                else:
                    fcntl.flock(self._floor, fcntl.LOCK_UN)
        os.close(self._floor)
        os.close(self._gate)

    def _is_sent(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._standing or self._over)
            return self._standing


class Holder(NamedTuple):
    """The process that writes at this moment: its pid, 0 if it could not write that down, and since when."""

    pid: int
    since_ms: int


def holder(database: Path) -> Holder | None:
    """Return which process writes at this moment, if any; one that does not go on blocks all others."""
    floor = database.with_name(f"{database.name}-floor")
    try:
        file = floor.open("rb")
    except FileNotFoundError:
        return None
    with file:
        try:
            # A shared lock: two processes that look must not take each other for a writer.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # The holder writes its pid when it comes, so that is when the file was changed last.
            return Holder(int(file.read(20) or 0), os.fstat(file.fileno()).st_mtime_ns // 1_000_000)
        return None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreReadOnly(
            f"the lock file {path} cannot be opened: {error.strerror}", path=str(path)
        ) from error
