"""`tally work` whose messages nobody can hear: it serves on, and its jobs do not notice."""

from __future__ import annotations

import logging
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from tallystick import JobFailed, Tally
from tallystick.cli.commands.work.here import Watch, told_by_log
from tallystick.cli.commands.work.progress import WorkReporter
from tallystick.worker.options import WorkerOptions
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.surfaces.commands import PATIENCE, TALLY, Shop, Work


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


@contextmanager
def working(shop: Shop, *options: str, stderr: int | IO[str]) -> Iterator[subprocess.Popen[str]]:
    """Run `tally work` for people, with its messages going there."""
    process = subprocess.Popen(
        [TALLY, "work", "shop", *options],
        cwd=shop.folder,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def hang_up(process: subprocess.Popen[str]) -> None:
    """Read until it serves, and go away."""
    assert process.stderr
    while not process.stderr.readline().startswith("serving"):
        assert process.poll() is None
    process.stderr.close()


def stopped(process: subprocess.Popen[str]) -> int:
    """Ask it to stop and return the exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE)


def check_it_serves(shop: Shop) -> None:
    """Submit more trouble than there are slots, and then a job that must be done all the same."""
    bad = [shop.submit("shop:fails", '"no money"') for _ in range(3)]
    good = shop.submit("shop:checkout", "1")
    wait_until(lambda: shop.state(good) == "SUCCEEDED", "the good job ends")
    for job in bad:
        wait_until(lambda job=job: shop.state(job) == "FAILED_FINAL", "the bad jobs end")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_reader_of_its_messages_that_goes_away_stops_nothing(shop, processes):
    options = ("--concurrency", "2", "--processes", processes, "--verbose")
    with working(shop, *options, stderr=subprocess.PIPE) as process:
        hang_up(process)
        check_it_serves(shop)
        assert stopped(process) == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_full_disk_below_its_messages_stops_nothing(shop, processes):
    with (
        Path("/dev/full").open("w") as full,
        working(shop, "--concurrency", "2", "--processes", processes, stderr=full) as process,
    ):
        check_it_serves(shop)
        assert stopped(process) == 0


@pytest.mark.parametrize("without_rich", [False, True], ids=["rich", "plain"])
def test_a_terminal_that_is_closed_stops_nothing(shop, without_rich):
    if without_rich:
        source = shop.folder / "shop.py"
        lines = source.read_text().replace("from __future__ import annotations\n", "")
        source.write_text(f"import sys; sys.modules['rich'] = None\n{lines}")
    ours, theirs = pty.openpty()
    with working(shop, "--concurrency", "2", stderr=theirs) as process:
        os.close(theirs)
        os.read(ours, 65536)
        os.close(ours)
        check_it_serves(shop)
        assert stopped(process) == 0


def test_a_job_is_taken_over_by_a_worker_that_nobody_hears(shop):
    """The first thing it says of such a job is said before the job runs."""
    job = shop.submit("shop:waits", '"go"')
    with Work(shop, "--lease", "1s") as victim:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        victim.process.kill()
    with working(shop, "--lease", "1s", stderr=subprocess.PIPE) as heir:
        hang_up(heir)
        (shop.folder / "go").touch()
        wait_until(lambda: shop.state(job) == "SUCCEEDED", "the job ends")
        assert stopped(heir) == 0


def test_a_second_signal_ends_it_at_once_although_it_cannot_say_so(shop):
    shop.submit("shop:waits", '"never"')
    with working(shop, stderr=subprocess.PIPE) as process:
        hang_up(process)
        wait_until((shop.folder / "never.began").exists, "the job runs")
        wait_until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None, "its end")
        assert process.returncode == 128 + signal.SIGTERM


def test_a_reporter_with_a_bug_is_logged_and_ends_nobody_who_works(tmp_path, caplog):
    class Broken(WorkReporter):
        def event(self, kind: str, words: str, **fields: object) -> None:
            raise RuntimeError(words)

    app = Tally(f"sqlite:///{tmp_path}/shop.db")

    @app.workflow
    def greet(name: str) -> str:
        return f"hello {name}"

    watch = Watch(Broken(verbose=True))
    runtime = app.runtime()
    watch.listen(runtime.observers)
    runtime.start_worker(app.workflows, WorkerOptions(concurrency=1))
    assert [greet.submit(name).result(PATIENCE) for name in ("Ada", "Bo")] == ["hello Ada", "hello Bo"]
    app.close()
    assert watch.progress(0).done == 2
    assert [record.action for record in caplog.records] == ["listener.failed"] * 2


def test_a_second_ctrl_c_leaves_the_cursor_visible(shop):
    shop.submit("shop:waits", '"never"')
    ours, theirs = pty.openpty()
    with working(shop, stderr=theirs) as process:
        os.close(theirs)
        wait_until((shop.folder / "never.began").exists, "the job runs")
        process.send_signal(signal.SIGTERM)
        said = b""
        while b"stopping" not in said and b"SIGTERM" not in said:
            said += os.read(ours, 65536)
        process.send_signal(signal.SIGTERM)
        with suppress(OSError):  # the terminal is gone with its last writer
            while more := os.read(ours, 65536):
                said += more
        assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    os.close(ours)
    assert said.rfind(b"\x1b[?25h") > said.rfind(b"\x1b[?25l") > -1


def test_what_the_log_says_about_jobs_is_told_by_observers_once(tmp_path):
    """And what any other part of the package logs is told too, whatever its action is called."""
    told = []

    class Noted(WorkReporter):
        def event(self, kind: str, words: str, **_fields: object) -> None:
            told.append((kind, words))

    app = Tally(f"sqlite:///{tmp_path}/shop.db")

    @app.workflow
    def fails() -> None:
        raise ValueError("no")

    reporter = Noted(verbose=True)
    Watch(reporter).listen(app.runtime().observers)
    log = logging.getLogger("tallystick")
    with told_by_log(reporter, always=True):
        with app.worker():
            job = fails.submit()
            with pytest.raises(JobFailed):
                job.result(PATIENCE)
        log.getChild("engine").warning("a record of its own", extra={"action": "job.failed"})
    app.close()
    assert [words for kind, words in told if kind == "failed"] == [
        f"job {job.id} (fails) failed: ValueError: no"
    ]
    assert [words for kind, words in told if kind == "warning"] == ["a record of its own"]
