"""What a person sees: rate, time left and a summary; nothing where nobody looks."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress

from tallystick.clock import VirtualClock
from tallystick.stage.progress import Meter, NoProgress, PlainProgress, plain_line, progress_on


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_rate_is_that_of_the_last_seconds():
    meter = Meter(1000, 0, now=0.0)
    meter.mark(10, now=100.0)
    meter.mark(110, now=101.0)
    meter.mark(310, now=103.0)
    assert meter.rate == 100.0
    assert meter.seconds_left == 6.9


def test_without_a_total_there_is_no_time_left():
    meter = Meter(None, 0, now=0.0)
    meter.mark(30, now=2.0)
    assert meter.seconds_left is None
    assert plain_line("hash", meter) == "hash 30 done  15.0/s"


def test_nothing_is_drawn_where_there_is_no_terminal():
    stream = io.StringIO()
    quiet = progress_on(wanted=None, name="s", total=3, done=0, clock=VirtualClock(), stream=stream)
    assert isinstance(quiet, NoProgress)
    loud = progress_on(wanted=True, name="s", total=3, done=0, clock=VirtualClock(), stream=stream)
    assert isinstance(loud, PlainProgress)
    refused = progress_on(wanted=False, name="s", total=3, done=0, clock=VirtualClock(), stream=Terminal())
    assert isinstance(refused, NoProgress)


def test_the_line_is_drawn_at_most_ten_times_a_second_and_ends_with_the_last_state():
    clock = VirtualClock()
    stream = Terminal()
    bar = progress_on(wanted=None, name="s", total=100, done=0, clock=clock, stream=stream)
    for done in range(1, 101):
        clock.advance(10)
        bar.show(done)
    bar.close()
    drawn = stream.getvalue().split("\r\x1b[K")
    assert 10 <= len(drawn) <= 13
    assert "100/100  100%" in drawn[-1]
    assert drawn[-1].endswith("\n")


def test_on_a_real_terminal_the_bar_of_rich_shows_the_count():
    script = (
        "import threading\n"
        "from tallystick.stage import Stage\n"
        "Stage(lambda item: threading.Event().wait(0.02), workers=4, name='paint').run(range(40))\n"
    )
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", script], stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    seen = b""
    # The other side of a terminal is closed with an error.
    with suppress(OSError):
        while chunk := os.read(ours, 4096):
            seen += chunk
    os.close(ours)
    assert child.wait(30) == 0
    assert b"paint" in seen
    assert b"40/40" in seen
