"""A flush that outlasts the lease of its job while another process sweeps: the order is held, not met.

The flush with a user's transaction stays open until a sweep of another process has read the attempt as one
that is lost. Whoever held it writes nothing more until that sweep has written what it decided.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Final

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.engine.committer import Committer
from tallystick.engine.sweep import Tell, sweep
from tallystick.store.api import Bundle, ExpiredAttempt, Fence, Outcome, Store
from tallystick.store.sqlite.crash_points import AROUND
from tallystick.store.sqlite.flush import BEFORE_COMMIT
from tallystick.store.sqlite.store import SqliteStore
from tallystick.worker.roles import reclaim
from tests.crash.sweep.mutants import put
from tests.crash.sweep.place import Place

FLUSH: Final = "flush"
_HELD, _SWEPT, _WRITTEN = "flush-held", "flush-swept", "flush-sweep-written"
_PATIENCE_SECONDS: Final = 20.0


class LongFlush:
    """What one process does: it holds its flush, or sweeps while another one holds."""

    def __init__(self, place: Place) -> None:
        """Begin with nothing held."""
        self._place = place
        self._point = crash.point
        self._apply = SqliteStore.apply
        self._expired = SqliteStore.expired
        self._has_tx = self._holds = False

    def install(self) -> None:
        """Put all of it into this process, for good."""
        put(crash, "point", self._reached)
        put(SqliteStore, "apply", lambda store, batch: self._applied(store, batch))  # noqa: PLW0108 (a bound method would not get the store)
        put(SqliteStore, "expired", lambda store, limit: self._read(store, limit))  # noqa: PLW0108 (as above)
        put(reclaim, "sweep", self._swept)

    def _reached(self, name: str) -> None:
        self._point(name)
        if name == AROUND["tx"][1]:
            self._has_tx = True
        if name == BEFORE_COMMIT and self._has_tx and self._place.first_time(_HELD):
            self._holds = True
            self._await(_SWEPT)

    def _applied(self, store: SqliteStore, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        if self._holds:
            self._await(_WRITTEN)
        return self._apply(store, batch)

    def _read(self, store: SqliteStore, limit: int) -> list[ExpiredAttempt]:
        found = self._expired(store, limit)
        if found and not self._holds and self._place.marked(_HELD):
            self._place.first_time(_SWEPT)
        return found

    def _swept(self, store: Store, committer: Committer, excused: Collection[Fence], tell: Tell) -> int:
        taken = sweep(store, committer, excused, tell)
        if not self._holds and self._place.marked(_SWEPT):
            self._place.first_time(_WRITTEN)
        return taken

    def _await(self, mark: str) -> None:
        clock, pause = SystemClock(), threading.Event()
        until = clock.monotonic() + _PATIENCE_SECONDS
        while not self._place.marked(mark) and clock.monotonic() < until:
            pause.wait(self._place.look_seconds)
