"""Real processes that start together and report what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tallystick import crash

SECONDS_MAX = 60


def race(url: str, role: str, arguments: Sequence[object], *, crash_at: str = "") -> list[Any]:
    """Start one process for each of `arguments`, let them go at once, and return their answers.

    The answer of a process that was killed at its crash point is None.
    """
    rivals = [_start(url, role, argument, crash_at) for argument in arguments]
    try:
        for rival in rivals:
            assert rival.stdout is not None
            assert rival.stdout.readline() == "ready\n"
        for rival in rivals:
            assert rival.stdin is not None
            rival.stdin.write("go\n")
            rival.stdin.flush()
        answers = [rival.communicate(timeout=SECONDS_MAX)[0] for rival in rivals]
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    return [json.loads(answer) if answer else None for answer in answers]


def _start(url: str, role: str, arguments: object, crash_at: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tallystick.testing.conformance.rival", url, role, json.dumps(arguments)]
    environment = os.environ | {crash.VARIABLE: crash_at}
    return subprocess.Popen(  # noqa: S603 (our own module, started by a test)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
