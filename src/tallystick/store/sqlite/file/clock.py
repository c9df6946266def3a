"""The clock of a file: the wall clock of its machine, which goes on as before when that is set back.

Every process on the machine reads the same two clocks: the wall clock, which can be set, and the boot clock,
which cannot. The file keeps one number, how far its own clock is ahead of the boot clock, and that number
never falls while the machine is up. A process writes it when it finds that the wall clock has moved ahead of
it: once after a boot, and once each time that the wall clock is put forward.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from tallystick.clock import Clock
from tallystick.store.sqlite.statements import sql

# A wall clock that is behind by no more than this is followed: clocks drift, and nothing waits long for that.
FOLLOWED_MS: Final = 1_000


class Instants(NamedTuple):
    """What time it is: on the clock of the file, and on the one that leases are measured on."""

    wall: int
    boot: int
    epoch: str


class FileClock:
    """What one process knows of the clock of its file."""

    def __init__(self, clock: Clock) -> None:
        """Know nothing yet: the first write looks into the file."""
        self._clock = clock
        self._epoch = ""
        self._ahead = 0
        self._sure = False
        # What the file was like after our last flush; no other process has written while it is like that.
        self._version = -1

    def begin(self, connection: apsw.Connection) -> None:
        """Let the clock of a new file begin, with the turn to write held."""
        connection.execute("BEGIN IMMEDIATE")
        self.now(connection)
        connection.execute("COMMIT")

    def wrote(self, connection: apsw.Connection) -> None:
        """Note that a flush of this process is durable."""
        self._version = connection.data_version()

    def now(self, connection: apsw.Connection, *, on_loan: bool = False) -> Instants:
        """Return the time, with the lock held; a connection `on_loan` knows nothing of earlier flushes."""
        # In this order: a process that is held up between the two is behind, which does no harm.
        wall, boot, epoch = self._clock.wall_ms(), self._clock.boot_ms(), self._clock.epoch()
        changed = on_loan or connection.data_version() != self._version
        if changed or not self._sure or epoch != self._epoch or wall - boot > self._ahead + FOLLOWED_MS:
            self._look(connection, wall, boot, epoch)
        return Instants(wall + self._lag(wall, boot), boot, epoch)

    def lag(self) -> int:
        """Return how far the wall clock is behind that of the file, as far as this process knows."""
        if self._clock.epoch() != self._epoch:
            return 0
        return self._lag(self._clock.wall_ms(), self._clock.boot_ms())

    def _lag(self, wall: int, boot: int) -> int:
        lag = boot + self._ahead - wall
        return lag if lag > FOLLOWED_MS else 0

    def _look(self, connection: apsw.Connection, wall: int, boot: int, epoch: str) -> None:
        """Learn how far the file is ahead, and write it there if the wall clock is further."""
        found: list[Any] = connection.execute(sql("clock")).fetchall()
        known = bool(found) and found[0][0] == epoch
        if known:
            self._ahead = found[0][1]
        else:
            # No clock goes on through a boot: the newest facts say best how late it was before.
            self._ahead = max(wall, connection.execute(sql("newest_instant")).get) - boot
        self._epoch = epoch
        # What is written here may be rolled back with the rest; so the next write looks again.
        self._sure = known and wall - boot <= self._ahead + FOLLOWED_MS
        if not self._sure:
            self._ahead = max(self._ahead, wall - boot)
            connection.execute(sql("set_clock"), (epoch, self._ahead))
