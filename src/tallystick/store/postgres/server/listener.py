"""Hearing that there may be work: a notification is a hint that saves looking, never a promise.

While the listener hears, one slow look in between is enough; while it does not (the connection died, or there
is a pooler in between, which cannot listen) the look is what finds work.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import psycopg
from psycopg import sql as composing

from tallystick.clock import Clock
from tallystick.store.postgres.server.address import Address

LOOK_SECONDS = 30.0
LOOK_SECONDS_DEAF = 1.0
_HEAR_SECONDS = 0.5

_log = logging.getLogger("tallystick.store")


class Listener:
    """One thread that listens, from the first question on."""

    def __init__(self, address: Address, clock: Clock) -> None:
        """Start nothing yet."""
        self._address = address
        self._clock = clock
        self._heard = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked_at = clock.monotonic()
        self.own_pids: set[int] = set()
        self.hears = False
        self._pulse = 0

    def pulse(self) -> int:
        """Return a number that grows when anything was heard, or when it is time to look."""
        if self._thread is None and not self._address.pooled:
            self._thread = threading.Thread(target=self._run, name="tally-listener", daemon=True)
            self._thread.start()
        now = self._clock.monotonic()
        due = now - self._looked_at >= (LOOK_SECONDS if self.hears else LOOK_SECONDS_DEAF)
        if due or self._heard.is_set():
            self._heard.clear()
            self._looked_at = now
            self._pulse += 1
        return self._pulse

    def note(self) -> None:
        """Note that this process has written."""
        self._heard.set()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(autocommit=True, **self._address.conninfo) as connection:
                    self._listen(connection)
            except psycopg.Error as error:
                _log.warning("listener: %s", error, extra={"action": "listener.lost"})
            finally:
                self.hears = False
                # What was said while no connection listened is lost: look.
                self._heard.set()
            self._stop.wait(LOOK_SECONDS_DEAF)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        channel = composing.Identifier(self._address.channel)
        connection.execute(composing.SQL("LISTEN {}").format(channel))
        self.hears = True
        self._heard.set()
        while not self._stop.is_set():
            for notification in connection.notifies(timeout=_HEAR_SECONDS):
                if notification.pid not in self.own_pids:
                    self._heard.set()
