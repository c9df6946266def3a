"""Notifies other processes on one file of a write, so that idle workers look at once.

It is a hint and nothing more. A ring may be lost, come late or come for nothing; a process that does not hear
it finds the work when it next looks, a tenth of a second later at most. So nothing here is ever an error.

Every store that is listened at has a datagram socket in a folder beside the database, one for all of its
listeners. To ring is one packet to each of the others, without waiting. A socket whose owner was killed is
removed by the first process that rings it.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tallystick.clock import Clock

# The longest address that every system takes.
_ADDRESS_BYTES_MAX: Final = 100
# Where Linux has what a process has open.
_OPEN: Final = "/proc/self/fd"
# A folder that was changed this short a while ago may change again without a later time on it: the clock of
# file systems ticks every few milliseconds, or every second or two if it knows no fractions.
_SETTLED_MS: Final = 50
_SETTLED_IN_WHOLE_SECONDS_MS: Final = 2_500
# Many rings in a row are heard as one: a listener looks at most this often.
_QUIET_SECONDS: Final = 0.010


class WriteNotifier:
    """The sockets at one file: one perhaps of this store, for all its listeners; the others of others."""

    def __init__(self, database: Path, clock: Clock) -> None:
        """Touch nothing yet: the folder is there only while a process listens or after it was killed."""
        self._folder = database.with_name(f"{database.name}-bells")
        self._clock = clock
        self._seen = (-1, -1)
        self._door = -1
        self._others: tuple[str, ...] = ()
        self._own = ""
        self._listeners: dict[str, Callable[[], None]] = {}
        self._changing = threading.Lock()
        self._ears: socket.socket | None = None
        self._hand: socket.socket | None = None
        self._mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._mouth.setblocking(False)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        """Tell every other listener that this process has written."""
        try:
            about = self._folder.stat()
        except OSError:
            return  # no process listens here
        if (about.st_ino, about.st_mtime_ns) != self._seen:
            self._look_around(about)
        for name in self._others:
            self._call(name)

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:
        """Call `heard`, in the notifier's thread, when a process rings; where sockets cannot be had, never.

        What is returned ends it; when the last listener has gone, nothing of the notifier is left behind.
        """
        with self._changing:
            self._listeners[name] = heard
            if self._thread is None:
                self._open(name)
        return partial(self._hush, name)

    def _open(self, name: str) -> None:
        ears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._open_door()
            # To hush it is to tap the thread on the shoulder: a ring needs the folder, which may be gone.
            shoulder, hand = socket.socketpair()
        except OSError:
            ears.close()
            return
        try:
            ears.bind(self._address(name))
        except OSError:
            for end in (ears, shoulder, hand):
                end.close()
            return
        self._ears, self._hand, self._own = ears, hand, name
        self._closing.clear()
        self._thread = threading.Thread(
            target=self._hear, args=(ears, shoulder), name="tally-write-notifier", daemon=True
        )
        self._thread.start()

    def _hush(self, name: str) -> None:
        with self._changing:
            if self._listeners.pop(name, None) is not None and not self._listeners:
                self._shut()

    def _shut(self) -> None:
        """Listen no more, and leave nothing behind."""
        if self._ears is None or self._hand is None or self._thread is None:
            return
        self._closing.set()
        self._hand.close()
        self._thread.join()
        self._ears.close()
        self._ears = self._hand = self._thread = None
        with suppress(OSError):
            (self._folder / self._own).unlink()
        with suppress(OSError):
            self._folder.rmdir()
        self._own, self._seen = "", (-1, -1)

    def close(self) -> None:
        """Give back everything."""
        with self._changing:
            self._listeners.clear()
            self._shut()
        self._mouth.close()
        self._close_door()

    def _look_around(self, about: os.stat_result) -> None:
        with suppress(OSError):
            self._open_door()
            names = (path.name for path in self._folder.iterdir())
            self._others = tuple(name for name in names if name != self._own)
            patience = _SETTLED_MS if about.st_mtime_ns % 1_000_000_000 else _SETTLED_IN_WHOLE_SECONDS_MS
            settled = self._clock.wall_ms() - about.st_mtime_ns // 1_000_000 > patience
            self._seen = (about.st_ino, about.st_mtime_ns) if settled else (-1, -1)

    def _open_door(self) -> None:
        self._close_door()
        self._door = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)

    def _close_door(self) -> None:
        door, self._door = self._door, -1
        if door >= 0:
            os.close(door)

    def _address(self, name: str) -> str:
        """Return the address of a socket; where a path is too long, by the descriptor of the folder."""
        address = str(self._folder / name)
        return address if len(os.fsencode(address)) <= _ADDRESS_BYTES_MAX else f"{_OPEN}/{self._door}/{name}"

    def _call(self, name: str) -> None:
        try:
            self._mouth.sendto(b"!", self._address(name))
        except ConnectionRefusedError:
            # The process that listened here is gone without a word.
            with suppress(OSError):
                (self._folder / name).unlink()
        except OSError:
            return  # it is full, so its owner will look anyway; or it is no longer there

    def _hear(self, ears: socket.socket, shoulder: socket.socket) -> None:
        with shoulder, selectors.PollSelector() as either:
            either.register(ears, selectors.EVENT_READ)
            either.register(shoulder, selectors.EVENT_READ)
            while either.select():
                if self._closing.is_set():
                    return
                # What comes after this may be about what is written after the look: it is heard as one more.
                _drain(ears)
                for heard in tuple(self._listeners.values()):
                    heard()
                self._closing.wait(_QUIET_SECONDS)


def _drain(ears: socket.socket) -> None:
    """Take everything that has come."""
    with suppress(BlockingIOError):
        while ears.recv(1, socket.MSG_DONTWAIT):
            pass
