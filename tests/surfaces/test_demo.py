"""The demo kills a real worker, shows the takeover, and fails loudly when the books do not balance."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from demo.books import audit, faults

ROOT = Path(__file__).parents[2]
ORDERS = 48


def play(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *options), cwd=ROOT, capture_output=True, check=False, encoding="utf-8", timeout=100
    )


def play_on_a_terminal(folder: Path, *options: str) -> tuple[int, str, str]:
    """Return the exit code, what the terminal showed, and what was complained of."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(folder, *options),
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    shown = bytearray()
    # A terminal whose last writer has gone reports an error instead of an end.
    with suppress(OSError):
        while chunk := os.read(ours, 65_536):
            shown += chunk
    os.close(ours)
    complaints = process.communicate(timeout=100)[1]
    return process.returncode, shown.decode("utf-8"), complaints.decode("utf-8")


def command(folder: Path, *options: str) -> list[str]:
    small = ["--orders", str(ORDERS), "--lease", "2s", "--pause", "0.03", "--keep", str(folder)]
    return [sys.executable, "-m", "demo", *small, *options]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def demo(folder):
    return play(folder)


def test_it_ends_well_and_complains_of_nothing(demo):
    assert demo.returncode == 0
    # The log says which jobs were taken over from the worker that was killed, and nothing else.
    complaints = demo.stderr.splitlines()
    assert not [line for line in complaints if not line.endswith("another worker goes on with it")]
    assert "The books balance." in demo.stdout
    assert os.access(ROOT / "scripts" / "demo", os.X_OK)


def test_everything_fits_on_a_terminal_of_eighty_columns(demo):
    lines = [line for line in demo.stdout.splitlines() if not line.startswith("  kept: ")]
    assert max(map(len, lines)) <= 80, max(lines, key=len)


def test_a_worker_is_killed_and_every_order_it_held_is_taken_over_by_another(demo):
    killed = re.search(r"kill -9 \d+: worker ([A-C]) is dead", demo.stdout)
    held = re.search(r"it held (\d+) orders, leased for 2s: ([\d, ]+)", demo.stdout)
    assert killed
    assert held
    taken = re.findall(
        r"^ +(\d+)   \S.*\+[\d.]+ s +\+[\d.]+ s +\+[\d.]+ s by ([A-C]) ", demo.stdout, re.MULTILINE
    )
    assert [order for order, _by in taken] == held[2].split(", ")
    assert int(held[1]) == len(taken) > 0
    assert killed[1] not in {by for _order, by in taken}


def test_it_is_in_colour_only_where_that_is_wanted(demo):
    assert "\x1b[" not in demo.stdout


def test_a_payment_booked_twice_ends_the_demo_with_an_error_that_names_it(tmp_path):
    """The negative control: an audit that cannot fail would prove nothing."""
    code, shown, complaints = play_on_a_terminal(tmp_path / "forged", "--forge")
    assert code == 1
    assert "THE BOOKS DO NOT BALANCE" in complaints
    assert re.search(r"payments: order \d+ is there 2 times instead of 1", complaints)
    assert "payments add up to" in complaints
    assert "The books balance" not in shown
    # Here somebody looked at a terminal: the picture was drawn again and again, in colour.
    assert shown.count("○ waiting") > 5
    assert "killed" in shown
    assert "\x1b[" in shown


@pytest.mark.parametrize(
    ("tampering", "complaint"),
    [
        ("DELETE FROM parcels WHERE order_id = 7", "parcels: order 7 is there 0 times"),
        ("INSERT INTO reserved VALUES (999, 1)", "reserved: order 999 is there 1 times instead of 0"),
        ("UPDATE payments SET cents = cents + 1 WHERE order_id = 3", "the orders cost"),
        ("UPDATE steps SET result = '1' WHERE name = 'quote' AND n = 4", "is not what was written"),
        ("DELETE FROM events WHERE type = 'return'", "its facts do not"),
        ("DELETE FROM events WHERE type = 'claim'", "one before it is missing"),
        ("UPDATE steps SET ledger = ledger - 1000000000 WHERE name = 'pay'", "pay of job"),
        ("UPDATE jobs SET start_ledger = start_ledger - 100000000", "start of job"),
        ("UPDATE jobs SET semaphore = 1", "1 open obligations"),
        ("UPDATE jobs SET state = 'FAILED_FINAL'", "jobs are FAILED_FINAL"),
        ("UPDATE attempts SET status = 'IN_PROGRESS' WHERE status = 'DONE'", "exactly one DONE attempt"),
    ],
)
def test_each_kind_of_tampering_is_found(demo, folder, tmp_path, tampering, complaint):
    assert demo.returncode == 0
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    for (trigger,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {trigger}")
    assert not list(faults(audit(tmp_path / "shop.db", folder / "calls.txt", ORDERS)))
    connection.execute(tampering)
    assert any(
        complaint in line for line in faults(audit(tmp_path / "shop.db", folder / "calls.txt", ORDERS))
    )
    connection.close()


def test_with_its_triggers_the_file_itself_refuses_the_tampering(demo, folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    with pytest.raises(apsw.ConstraintError, match="FINAL"):
        connection.execute("UPDATE steps SET result = '1' WHERE name = 'quote'")
    connection.close()
    assert demo.returncode == 0


def test_a_call_made_twice_is_found_when_nobody_died_over_it(demo, folder, tmp_path):
    calls = tmp_path / "calls.txt"
    calls.write_text((folder / "calls.txt").read_text() + "quote 1 1\n")
    assert demo.returncode == 0
    assert any("nobody died over it" in line for line in faults(audit(folder / "shop.db", calls, ORDERS)))


def test_no_worker_outlives_the_demo(tmp_path):
    process = subprocess.Popen(
        command(tmp_path / "cut"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    pids: list[int] = []
    while not pids:
        pids = [int(pid) for pid in re.findall(r"[A-C] = pid (\d+)", process.stdout.readline())]
    watched = [os.pidfd_open(pid) for pid in pids]
    process.kill()
    process.communicate()
    try:
        for descriptor in watched:  # readable when its process has ended
            assert select.select([descriptor], [], [], 30)[0]
    finally:
        for descriptor in watched:
            os.close(descriptor)
    assert len(pids) == 3


def test_it_wants_a_fresh_file(demo, folder):
    again = play(folder)
    assert again.returncode == 2
    assert "fresh file" in again.stderr
