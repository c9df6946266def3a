"""The real `tally` in a process of its own, forked from one that has imported it already.

To import it costs half a second of a processor, and the tests of the commands start it a thousand times. A
server is one process without threads: it forks for each command and leaves the command line, the folder, the
environment and the three streams to the child, which ends as any interpreter does. `Tally` is the side of the
test, and has the names of `subprocess.Popen`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, ClassVar

TALLY = Path(sys.executable).with_name("tally")
_MESSAGE_BYTES_MAX = 1 << 17
# An interpreter reads these when it starts, and ours has started.
_READ_AT_THE_START = ("PYTHON", "TALLYSTICK_", "LC_", "LANG")


class Server:
    """One process that forks, for one command at a time."""

    free: ClassVar[list[Server]] = []

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )

    def close(self) -> None:
        self.line.close()
        self._process.wait(10)

    @classmethod
    def take(cls) -> Server:
        return cls.free.pop() if cls.free else cls()


@atexit.register
def _close_servers() -> None:
    for server in Server.free:
        server.close()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Tell whether a fork would do with these variables what a new interpreter does."""
    return not any(name.startswith(_READ_AT_THE_START) for name in environment)


class Tally:
    """A `tally` that runs, with pipes at its streams."""

    def __init__(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        self._server = Server.take()
        command = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment)}
        stdin, ours_in = os.pipe()
        ours_out, stdout = os.pipe()
        ours_err, stderr = os.pipe()
        theirs = [stdin, stdout, stderr]
        socket.send_fds(self._server.line, [json.dumps(command).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin: IO[str] = os.fdopen(ours_in, "w")
        self.stdout: IO[str] = os.fdopen(ours_out)
        self.stderr: IO[str] = os.fdopen(ours_err)
        self.pid = int(self._server.line.recv(64))

    def communicate(self, said: str, timeout: float) -> tuple[str, str]:
        """Say this to it, and return what it said on either stream until its end."""
        with ThreadPoolExecutor(1) as reader, self.stdout, self.stderr:
            errors = reader.submit(self.stderr.read)
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(said)
            out = self.stdout.read()
            self.wait(timeout)
            return out, errors.result()

    def poll(self) -> int | None:
        """Return the exit status if it has ended; negative for a signal."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float) -> int:
        """Return the exit status when it has ended."""
        if self.returncode is None:
            self._server.line.settimeout(timeout)
            try:
                self.returncode = int(self._server.line.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("tally", timeout) from None
            self._server.line.settimeout(None)
            Server.free.append(self._server)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.send_signal(signal.SIGKILL)


def serve(line: socket.socket) -> int:
    """Fork for each command; the child returns from here with its exit code, as the script `tally` does."""
    from tallystick.cli import main as cli

    for module in pkgutil.walk_packages(importlib.import_module("tallystick").__path__, "tallystick."):
        if module.name.startswith(("tallystick.cli.", "tallystick.app.", "tallystick.store.sqlite.")):
            importlib.import_module(module.name)
    gc.freeze()
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(line, _MESSAGE_BYTES_MAX, 3)
        if not message:
            return 0
        pid = os.fork()
        if pid == 0:
            line.close()
            become(json.loads(message), descriptors)
            return cli.main()
        for descriptor in descriptors:
            os.close(descriptor)
        line.sendall(str(pid).encode())
        _pid, status = os.waitpid(pid, 0)
        line.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def become(command: dict, descriptors: Sequence[int]) -> None:
    """Take the place of the script `tally`."""
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv[:] = [str(TALLY), *command["arguments"]]
    sys.path[0] = str(TALLY.parent)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as line:
        code = serve(line)
    sys.exit(code)
