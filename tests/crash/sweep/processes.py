"""Children by fork: started in milliseconds, told from each other by how they died.

The parent has one thread and no open database when it forks. A child talks on one pipe, whose end is its
death, and is told to go on by another.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.crash.sweep.facts import EXIT_BROKEN
from tests.patience import let_time_pass

_STACKS = signal.SIGUSR1


class Line:
    """The child's end of the two pipes."""

    def __init__(self, ear: int, mouth: int) -> None:
        self._ear = ear
        self._mouth = mouth

    def say(self, text: str) -> None:
        """Send one line to the parent."""
        os.write(self._mouth, f"{text}\n".encode())

    def hear(self) -> None:
        """Wait until the parent says go."""
        os.read(self._ear, 1)


class Child:
    """A forked process as its parent sees it."""

    def __init__(self, body: Callable[[Line], int], log: Path, armed: str = "") -> None:
        """Fork; the body's return value is the exit status, and its errors go to the log."""
        self.armed = armed
        ear, self._to_child = os.pipe()
        self._from_child, mouth = os.pipe()
        self._heard = b""
        self.status: int | None = None
        self.pid = os.fork()
        if not self.pid:
            os.close(self._to_child)
            os.close(self._from_child)
            _live(body, Line(ear, mouth), log)
        os.close(ear)
        os.close(mouth)

    @property
    def killed(self) -> bool:
        """Tell whether it died by SIGKILL."""
        return self.status == -signal.SIGKILL

    def fileno(self) -> int:
        """Return what a caller can wait for: readable when the child said something or died."""
        return self._from_child

    def listen(self, seconds: float) -> str | None:
        """Return the next line; None when the child has died or nothing was said in that time."""
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._from_child], [], [], seconds)
            said = os.read(self._from_child, 65536) if ready else b""
            if not said:
                return None
            self._heard += said
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    @property
    def last_words(self) -> str:
        """Return the last whole line that it said and nobody listened to."""
        lines = self._heard.decode().splitlines()
        return lines[-1] if lines else ""

    def go_on(self) -> None:
        """Let a child that waits go on; one that has died does not mind."""
        with suppress(BrokenPipeError):
            os.write(self._to_child, b"!")

    def wait(self, seconds: float) -> int | None:
        """Return its exit status (negative for a signal), or None if it is still alive after that time."""
        while self.status is None:
            ready, _, _ = select.select([self._from_child], [], [], seconds)
            if not ready:
                return None
            said = os.read(self._from_child, 65536)
            self._heard += said
            if not said:
                self._reap()
        return self.status

    def tell_stacks(self) -> None:
        """Have it write to the log where each of its threads is; it is alive."""
        os.kill(self.pid, _STACKS)
        let_time_pass(1.0)

    def end(self) -> None:
        """Make sure that it is gone, whatever state it is in."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def kill(self) -> None:
        """Kill it (SIGKILL), wherever it is."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> bool:
        """Stop it (SIGSTOP), wherever it is, and tell whether it lived to be stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        _pid, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._buried(status)
        return self.status is None

    def stop_outside_transactions(self, is_quiet: Callable[[int], bool]) -> bool:
        """Stop it (SIGSTOP) when it has no transaction open; tell whether it lived to be stopped.

        A process that is stopped inside a transaction stops everybody who needs its locks, which is another
        story.
        """
        while self.stop() and not is_quiet(self.pid):
            self.revive()
            let_time_pass(0.003)
        return self.status is None

    def revive(self) -> None:
        """Let a stopped process run again (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def _reap(self) -> None:
        _pid, status = os.waitpid(self.pid, 0)
        self._buried(status)

    def _buried(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)
        os.close(self._from_child)
        os.close(self._to_child)


def _live(body: Callable[[Line], int], line: Line, log: Path) -> None:
    """Be the child, and never return into the parent's code."""
    status = EXIT_BROKEN
    try:
        os.dup2(os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), 2)
        faulthandler.register(_STACKS, file=2)
        status = body(line)
    except BaseException:  # noqa: BLE001 (a child has nobody to raise to; the log and the status tell)
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
