"""`tally top`: one look for people and programs, and a screen of its own at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from contextlib import closing
from fcntl import ioctl
from typing import Any

import pytest

from tallystick import Tally
from tallystick.cli.commands.work.top import as_data, drawn, look
from tallystick.cli.render.output import Ink
from tallystick.clock import VirtualClock
from tallystick.testing.stepping import SteppedWorker
from tests.patience import wait_until
from tests.postgres.subject import fresh_schema
from tests.surfaces.commands import PATIENCE, TALLY, Shop, Work


@pytest.fixture(params=["sqlite", "postgres"])
def busy(request, tmp_path):
    """A store with jobs that wait, run, are held, and have lost their worker; and its clock."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("server").url(schema=fresh_schema())
    clock = VirtualClock()
    app = Tally(url, clock=clock)

    @app.workflow(queue="mail")
    def letter(to: str) -> None: ...

    app.queue("mail", concurrency=3, rate="100/1m", burst=3)
    app.declare_queues()
    with closing(app):
        jobs = [letter.submit(name) for name in ("ada", "bob", "eve")]
        hand = SteppedWorker(app, clock, "worker-1", ("mail",))
        assert hand.claim() is not None
        clock.advance(90_000)
        assert SteppedWorker(app, clock, "worker-2", ("mail",)).claim() is not None
        jobs[2].pause(why="ask the customer")
        app.queues.pause("mail", by="ada")
        letter.submit("tom")
        clock.advance(5_000)
        yield app, jobs


def test_one_look_has_queues_running_jobs_and_stuck_ones(busy):
    app, jobs = busy
    text = "\n".join(drawn(look(app.runtime().store), Ink(wet=False)))
    assert re.search(
        r"mail +1 due +oldest 5 seconds ago +2 of 3 running, at most 100/1m +paused by ada", text
    )
    assert re.search(rf"{jobs[0].id} +letter +mail +for 1 minute +worker-1", text)
    assert text.index(jobs[0].id) < text.index(jobs[1].id), "the one that runs longest comes first"
    assert re.search(rf"{jobs[0].id} +lease ran out +1 lease of worker-1", text)
    assert re.search(rf"{jobs[2].id} +held PAUSED +ask the customer", text)
    assert "no workers" in text


def test_the_same_look_is_there_for_programs(busy):
    app, jobs = busy
    data: Any = as_data(look(app.runtime().store))
    assert [(each["queue"], each["due"]) for each in data["queues"]] == [("mail", 1)]
    assert [(each["queue"], each["running"], each["concurrency"]) for each in data["limits"]] == [
        ("mail", 2, 3)
    ]
    assert [each["job_id"] for each in data["running"]] == [jobs[0].id, jobs[1].id]
    assert [each["job_id"] for each in data["held"]] == [jobs[2].id]


def test_an_empty_store_says_so(tmp_path):
    with closing(Tally(f"sqlite:///{tmp_path / 'shop.db'}")) as app:
        lines = drawn(look(app.runtime().store), Ink(wet=False))
    assert [line for line in lines if "no" in line.split()[:1] or "nothing" in line] == [
        "nothing waits", "no workers", "nothing runs", "nothing is stuck"
    ]  # fmt: skip


class Screen:
    """A terminal of 24 lines that knows what `tally top` says to it."""

    def __init__(self) -> None:
        self.lines = [""] * 24
        self.seen = ""
        self._at = (0, 0)

    def feed(self, text: str) -> None:
        self.seen += text
        for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
            row, column = self._at
            if part == "\x1b[H":
                self._at = (0, 0)
            elif part == "\x1b[K":
                self.lines[row] = self.lines[row][:column]
            elif part == "\x1b[J":
                self.lines[row] = self.lines[row][:column]
                self.lines[row + 1 :] = [""] * (23 - row)
            elif part == "\r":
                self._at = (row, 0)
            elif part == "\n":
                self._at = (min(row + 1, 23), column)
            elif not part.startswith("\x1b"):
                self.lines[row] = self.lines[row][:column] + part + self.lines[row][column + len(part) :]
                self._at = (row, column + len(part))


def test_at_a_terminal_the_screen_is_drawn_again_and_given_back(tmp_path):
    shop = Shop(tmp_path)
    with Work(shop) as work:
        shop.submit("shop:waits", '"open"')
        wait_until((tmp_path / "open.began").exists)
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
        top = subprocess.Popen(
            [TALLY, "top", "shop", "--every", "50ms"],
            cwd=shop.folder,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        )
        os.close(theirs)
        screen = Screen()
        show_until(screen, ours, lambda: any("waits" in line and " for " in line for line in screen.lines))
        assert screen.lines[0].count("1 worker") == 1
        assert [line for line in screen.lines if line.isupper()] == [
            "QUEUES",
            "WORKERS",
            "RUNNING LONGEST",
            "STUCK",
        ]
        (tmp_path / "open").touch()
        show_until(screen, ours, lambda: "nothing runs" in screen.lines)
        top.send_signal(signal.SIGINT)
        show_until(screen, ours, lambda: screen.seen.endswith("\x1b[?25h\x1b[?1049l"))
        _, said = top.communicate(timeout=PATIENCE)
        assert (top.returncode, said) == (0, b"")
        assert screen.seen.startswith("\x1b[?1049h\x1b[?25l")
        os.close(ours)
        assert work.stop() == 0


def show_until(screen: Screen, terminal: int, condition) -> None:
    while not condition():
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, screen.lines
        screen.feed(os.read(terminal, 65_536).decode())


def test_where_no_terminal_is_it_prints_once_and_ends(tmp_path):
    shop = Shop(tmp_path)
    shop.submit("shop:checkout", "1")
    done = shop.tally("top", "shop")
    assert done.code == 0
    assert re.search(r"^default +1 due", done.out, re.MULTILINE)
    assert "\x1b" not in done.out
