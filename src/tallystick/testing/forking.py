"""A function in a process of its own, which may be killed: what it told before is heard."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from tallystick.clock import SystemClock

_READ_BYTES: Final = 65_536
_FAILED: Final = 1


class ForkedProcess(NamedTuple):
    """What a process told, a line each, and how it ended: its exit code, or the signal below zero."""

    lines: list[bytes]
    code: int

    @property
    def was_killed(self) -> bool:
        """Tell whether it was killed at a crash point."""
        return self.code == -signal.SIGKILL


class TookTooLong(Exception):
    """A process did not end in its time, and was killed by the test."""


def forked(live: Callable[[], Iterable[bytes]], seconds: float) -> ForkedProcess:
    """Call a function in a fork of this process; each line that it gives is told at once.

    An error of the function ends the process with its traceback on stderr and exit code 1.
    """
    reader, writer = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_the_child(live, writer)
    os.close(writer)
    try:
        told = _heard(reader, pid, seconds)
    finally:
        os.close(reader)
    _pid, status = os.waitpid(pid, 0)
    return ForkedProcess(told.splitlines(), os.waitstatus_to_exitcode(status))


def _be_the_child(live: Callable[[], Iterable[bytes]], writer: int) -> None:
    """Do the work and end this process, without what the test would do when it ends."""
    code = _FAILED
    try:
        for line in live():
            os.write(writer, line + b"\n")
        code = 0
    except BaseException:  # noqa: BLE001 (it is told in the exit code, and nothing above may run twice)
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _heard(reader: int, pid: int, seconds: float) -> bytes:
    """Return everything that a process says until it has ended."""
    clock = SystemClock()
    told, until = b"", clock.monotonic() + seconds
    while True:
        ready, _, _ = select.select([reader], [], [], max(0, until - clock.monotonic()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TookTooLong(f"a process did not end in {seconds:g} s")
        part = os.read(reader, _READ_BYTES)
        if not part:
            return told
        told += part
