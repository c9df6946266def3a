"""Things of the harness run in a fresh interpreter: it forks, which a test process with threads must not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HARNESS = "tests.crash.sweep"
ROOT = Path(__file__).parents[2]


def python(*arguments: str, seconds: float = 110, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python and return what it did; children that it leaves behind do not keep the pipes."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def trial(case: str, folder: Path, before: str = "") -> str:
    """Run one case in a folder, after some lines of code, and return its verdict as JSON."""
    script = f"""
import sys
from pathlib import Path
from {HARNESS}.controls import CONTROLS
from {HARNESS}.place import Place
from {HARNESS}.plan import *
from {HARNESS}.trial import *
{before}
print(run({case}, Place(Path(sys.argv[1]))).text())
"""
    answer = python("-c", script, str(folder))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
