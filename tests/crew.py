"""Worker processes that are killed and replaced, for tests of what is left behind."""

from __future__ import annotations

import random
import subprocess
import sys


class Crew:
    """So many processes of one program; who dies is replaced."""

    def __init__(self, workers: int, module: str, url: str) -> None:
        """Start them: `python -m MODULE URL`."""
        self._command = [sys.executable, "-m", module, url]
        self._workers = [self._start() for _ in range(workers)]

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def kill(self, chance: random.Random) -> None:
        """Kill one as `kill -9` does, and start another."""
        index = chance.randrange(len(self._workers))
        self._workers[index].kill()
        self._workers[index].wait(30)
        self._workers[index] = self._start()

    def dismiss(self) -> None:
        """Kill all of them."""
        for worker in self._workers:
            worker.kill()
            worker.wait(30)
