"""Real kills: SIGKILL at every journal write and around every commit, then resume; Ctrl-C once and twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick import crash
from tallystick.stage import Stage, audit, read_journal
from tallystick.stage.journal import journal
from tallystick.stage.lanes import commit
from tests.fork_server import ForkServer

ITEMS = 7
RunChild = Callable[..., int]
POINTS = [
    journal.CREATED,
    journal.BEFORE_WRITE,
    journal.WRITTEN,
    journal.SYNCED,
    commit.BEFORE_COMMIT,
    commit.AFTER_COMMIT,
]


@pytest.fixture(scope="module")
def server():
    """A child is a fork of a process that has imported everything: a real kill, and a cheap start."""
    process = ForkServer("tests.stage.killed_stage")
    yield process
    process.close()


@pytest.fixture
def run_child(server: ForkServer):
    def run(folder: Path, crash_at: str = "") -> int:
        return server.run(folder=str(folder), crash=crash_at, items=ITEMS)

    return run


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def durable_in(folder: Path) -> set[int]:
    path = folder / "journal"
    return {one.seq for one in read_journal(path)} if path.exists() and path.stat().st_size else set()


def check_books(folder: Path) -> None:
    """The oracle: all of it once in the journal, delivered in order, at most the last batch again."""
    assert [one.value for one in read_journal(folder / "journal")] == [n * n for n in range(ITEMS)]
    assert audit(folder / "journal").ok
    delivered: dict[int, str] = {}
    following = 0
    for line in lines_of(folder / "committed"):
        first, redelivered, values = line.split(" ", 2)
        if int(first) in delivered:
            assert redelivered == "True"
            assert delivered[int(first)] == values, "handed over again, as it was"
            assert int(first) + len(values.split()) == following, "only the last batch can be in doubt"
        else:
            assert int(first) == following, "in order and without a gap"
            delivered[int(first)] = values
            following += len(values.split())
    assert following == ITEMS


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_every_visit_of_every_point_loses_and_repeats_nothing(
    tmp_path: Path, run_child: RunChild, point: str
):
    """C01. Each visit of the point in turn, until a run gets through without meeting it."""
    for visit in range(1, 40):
        folder = tmp_path / str(visit)
        folder.mkdir()
        ended = run_child(folder, f"{point}:{visit}")
        if ended == 0:
            assert visit > 1, "the point was never visited"
            return
        assert ended == -signal.SIGKILL
        durable = durable_in(folder)
        computed_before = len(lines_of(folder / "computed"))
        assert run_child(folder) == 0
        again = {int(line) for line in lines_of(folder / "computed")[computed_before:]}
        assert not again & durable, "an outcome that was durable was computed again"
        check_books(folder)
    pytest.fail("the point was visited without end")


def test_a_kill_while_a_torn_line_is_being_cut_leaves_it_to_the_next_run(tmp_path: Path, run_child: RunChild):
    """C02. A crash during recovery, at each point that recovery passes."""
    for crash_at in (
        f"{journal.BEFORE_CUT}:1",
        f"{journal.BEFORE_WRITE}:1",
        f"{journal.WRITTEN}:1",
        f"{journal.SYNCED}:1",
        f"{journal.SYNCED}:2",
    ):
        folder = tmp_path / crash_at
        folder.mkdir()
        assert run_child(folder, f"{journal.SYNCED}:3") == -signal.SIGKILL
        durable = durable_in(folder)
        with (folder / "journal").open("ab") as file:
            file.write(b'0123456789abcdef {"kind":"batch","first":' + b"x" * 200)
        assert run_child(folder, crash_at) == -signal.SIGKILL
        computed_before = len(lines_of(folder / "computed"))
        assert run_child(folder) == 0
        again = {int(line) for line in lines_of(folder / "computed")[computed_before:]}
        assert not again & durable
        check_books(folder)
        assert len(audit(folder / "journal").standing.cuts) >= 1


def test_every_crash_point_of_the_stage_is_killed_here():
    declared = {name for name in crash.points() if name.startswith("stage.")}
    assert declared == {*POINTS, journal.BEFORE_CUT}


SLOW = """
import os, sys, threading
from tallystick.stage import Stage

def slow(item):
    os.write(1, f"begun {item}\\n".encode())
    threading.Event().wait(float(sys.argv[2]))
    return item

stage = Stage(slow, journal=sys.argv[1], workers=2, grace=sys.argv[3])
try:
    stage.run(range(1000))
except KeyboardInterrupt:
    print("stopped", stage.summary.stopped, stage.summary.committed, flush=True)
    sys.exit(130)
"""


def start_slow(path: Path, seconds: str, grace: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path), seconds, grace], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline().startswith("begun")
    return child


def test_the_first_interrupt_stops_in_order_and_keeps_what_was_begun(tmp_path: Path):
    child = start_slow(tmp_path / "j", "0.05", "10s")
    child.send_signal(signal.SIGINT)
    assert child.stdout is not None
    with child.stdout:
        output = child.stdout.read()
    assert child.wait(30) == 130
    begun = output.count("begun") + 1
    stopped = output.splitlines()[-1].split()
    assert stopped[:2] == ["stopped", "interrupted"]
    assert int(stopped[2]) == begun, "everything that was begun is committed"
    books = audit(tmp_path / "j")
    assert books.ok
    assert books.runs[0].closed
    assert not books.standing.complete


def test_the_first_interrupt_stops_tasks_in_order_too(tmp_path: Path):
    script = """
import asyncio, os, sys
from tallystick.stage import Stage

async def slow(item):
    os.write(1, f"begun {item}\\n".encode())
    await asyncio.sleep(0.05)
    return item

stage = Stage(slow, journal=sys.argv[1], workers=2)
try:
    stage.run(range(1000))
except KeyboardInterrupt:
    print("stopped", stage.summary.stopped, stage.summary.committed, flush=True)
    sys.exit(130)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "j")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        first = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        output = first + child.stdout.read()
    assert child.wait(30) == 130
    assert output.splitlines()[-1] == f"stopped interrupted {output.count('begun')}"
    assert audit(tmp_path / "j").runs[0].closed


def test_the_second_interrupt_ends_at_once_and_the_journal_can_be_resumed(tmp_path: Path):
    child = start_slow(tmp_path / "j", "60", "60s")
    child.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 130
    assert child.stdout is not None
    child.stdout.close()
    assert not audit(tmp_path / "j").runs[0].closed
    summary = Stage(lambda item: item, journal=tmp_path / "j", name="slow").run(range(50))
    assert summary.complete
    assert audit(tmp_path / "j").ok
