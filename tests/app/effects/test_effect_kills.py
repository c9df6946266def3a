"""kill -9 around a charge at a real provider: no second charge, none that the books deny, none stuck."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books

PROGRAMS = [sys.executable, "-m"]


@pytest.fixture
def provider(tmp_path):
    """The port of a provider, and its ledger."""
    ledger = tmp_path / "ledger.txt"
    process = subprocess.Popen(
        [*PROGRAMS, "tests.app.programs.provider", str(ledger)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip(), ledger
    process.kill()
    process.wait()
    process.stdout.close()


def charging(
    url: str, port: str, path: str = "/charge", dies: str = "-", crash_at: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the worker to the end of its job, or to its death."""
    about = {**os.environ, "TALLYSTICK_CRASH_AT": crash_at} if crash_at else dict(os.environ)
    call = [*PROGRAMS, "tests.app.programs.charging", url, port, path, dies]
    return subprocess.run(call, env=about, capture_output=True, text=True, timeout=120, check=False)


def judge(url: str, ledger: Path, ended: subprocess.CompletedProcess[str]) -> None:
    """One charge, of which the books tell; the job has ended with it."""
    assert (ended.returncode, ended.stdout.strip()) == (0, "for charge-7"), ended.stderr
    assert ledger.read_text("utf-8").split() == ["charge-7"]
    app = Tally(url)
    try:
        assert check_books(app) == []
        with app.connect() as db:
            rows = db.execute("select key, state, outcome from effect_keys")
        assert [tuple(row) for row in rows] == [("charge-7", "DONE", "HAPPENED")]
    finally:
        app.close()


MOMENTS = ["before the call", "after the call", "in the probe"]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/cut", "/fail"])
def test_a_provider_that_acts_and_does_not_say_so_is_asked(url, provider, path):
    port, ledger = provider
    judge(url, ledger, charging(url, port, path))


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS[1:])
def test_a_worker_killed_after_the_provider_has_acted(url, provider, moment):
    port, ledger = provider
    path = "/cut" if moment == "in the probe" else "/charge"
    killed = charging(url, port, path, moment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    judge(url, ledger, charging(url, port))


@pytest.mark.long
@pytest.mark.parametrize("path", ["/charge", "/cut", "/fail"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_killed_anywhere_around_the_call(url, provider, moment, path):
    port, ledger = provider
    killed = charging(url, port, path, moment)
    assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
    judge(url, ledger, charging(url, port))


@pytest.mark.long
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("path", ["/charge", "/cut"])
@pytest.mark.parametrize("number", range(1, 9))
def test_a_worker_killed_at_a_commit(url, provider, side, path, number):
    port, ledger = provider
    store = "sqlite" if url.startswith("sqlite") else "postgres"
    killed = charging(url, port, path, crash_at=f"{store}.commit.{side}:{number}")
    assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
    judge(url, ledger, charging(url, port))
