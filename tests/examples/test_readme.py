"""The program of the README does what the README says, with the kill."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


@pytest.fixture
def shop(tmp_path):
    assert PROGRAM
    (tmp_path / "shop.py").write_text(PROGRAM[1], encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "shop.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_it_is_forty_lines():
    assert PROGRAM
    written = [line for line in PROGRAM[1].splitlines() if line.strip()]
    assert 25 <= len(written) <= 40


def test_of_two_processes_one_is_killed_and_the_other_finishes_every_order_once(shop):
    victim, heir = shop(), shop()
    seen = [victim.stdout.readline() for _ in range(5)]
    assert seen == [f"parcel {order}\n" for order in range(1, 6)]
    victim.send_signal(signal.SIGKILL)
    printed, complaints = heir.communicate(timeout=60)
    assert (heir.returncode, complaints) == (0, "")
    assert printed.splitlines() == [*(f"parcel {order}" for order in range(1, 41)), "[(40, 40)]"]
    assert victim.wait() == -signal.SIGKILL


def test_killed_and_started_again_it_goes_on(shop):
    victim = shop()
    victim.stdout.readline()
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    printed, complaints = shop().communicate(timeout=60)
    assert complaints == ""
    assert printed.splitlines()[-1] == "[(40, 40)]"
