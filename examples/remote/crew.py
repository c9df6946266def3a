"""What both programs share: the server of an app, and programs that run beside it until the end."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

HERE = Path(__file__).parent


class Server(NamedTuple):
    url: str
    key: str


class Crew:
    """Processes that are killed when the program ends."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._env = {"TALLYSTICK_CALLBACK_KEYS": f"k1:{secrets.token_hex(32)}", **os.environ}
        self._env["PYTHONPATH"] = str(HERE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def start(self, *command: object) -> subprocess.Popen[str]:
        words = [str(word) for word in command]
        process = subprocess.Popen(words, env=self._env, text=True, stdout=subprocess.PIPE)
        self._processes.append(process)
        return process

    def serve(self, app: str, store: str) -> Server:
        """Start `tally serve` for an app; without keys it makes one for its lifetime, and prints it."""
        where = ("--url", store, "--bind", "127.0.0.1:0", "--json")
        process = self.start(sys.executable, "-m", "tallystick", "serve", app, *where)
        assert process.stdout is not None
        said = json.loads(_object(process.stdout))
        return Server(said["url"], said["key"])


def _object(lines: Iterable[str]) -> str:
    """Return the first JSON object that a program prints; it may have ended before it has printed one."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            return text
    raise RuntimeError("tally serve ended before it could serve; it has written why above")
