"""The examples of effects run through kills, on both stores: each acts once, and says what it promises."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books
from tests.tallies import url  # noqa: F401 (the store of each kind in turn)

FOLDER = Path(__file__).parents[2] / "examples" / "effects"
LEDGERS = {
    "payment_with_key": ("bank.txt", '["charge:7", "1999 cents for order 7"]'),
    "payment_by_search": ("bank.txt", "order-7: 1999 cents for 7"),
    "mail": ("mails.txt", "mail:7 about order 7"),
}
# Around what is written before the call, and after it.
KILLS = ["intent.before", "intent.after", "result.before", "result.after"]


def run(name: str, folder: Path, address: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", FOLDER / f"{name}.py"],
        cwd=folder,
        env=os.environ | {"TALLY_URL": address, "TALLYSTICK_CRASH_AT": crash_at},
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=120,
    )


def killed_and_run_again(name: str, folder: Path, address: str, kill: str) -> None:
    ledger, line = LEDGERS[name]
    store = "sqlite" if address.startswith("sqlite") else "postgres"
    Tally(address).close()
    assert run(name, folder, address, f"{store}.{kill}").returncode == -signal.SIGKILL
    done = run(name, folder, address)
    printed = (FOLDER / f"{name}.py").read_text("utf-8").rpartition("# Output:\n# ")[2]
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert (folder / ledger).read_text("utf-8").splitlines() == [line]
    app = Tally(address)
    try:
        assert check_books(app) == []
    finally:
        app.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", LEDGERS)
def test_an_example_of_effects_is_killed_before_it_says_what_came_of_its_call(name, tmp_path):
    killed_and_run_again(name, tmp_path, f"sqlite:///{tmp_path}/shop.db", "result.before")


@pytest.mark.long
@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("kill", KILLS)
def test_an_example_of_effects_is_killed_anywhere(name, kill, tmp_path, url):  # noqa: F811 (the fixture)
    killed_and_run_again(name, tmp_path, url, kill)
