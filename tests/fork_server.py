"""A process that forks a child for each command, so that a thousand real `kill -9` cost seconds.

A program is imported once, in the server; a child is a fork of it. Commands go in as lines of JSON, and the
answer is the exit status of the child.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent


class ForkServer:
    """The side of the test: starts a module of the tests that calls `serve`, and sends it commands."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, **command: object) -> int:
        """Return the exit status of one child; -9 means that it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def serve(child: Callable[[dict], int]) -> None:
    """Call `child` in a fork for each command, and answer with its exit status."""
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 9
            try:
                status = child(json.loads(line))
            except BaseException:  # noqa: BLE001 (the child ends here; its traceback is all that is left)
                traceback.print_exc()
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
