"""The example at the head of the design runs as it is written, on both stores, through kills."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib import util
from pathlib import Path

import pytest

from tallystick import JobCancelled
from tests.patience import wait_until

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "app" / "programs" / "shop.py"
HOUR_MS = 3_600_000


class Shop:
    """The program in this process, and as workers in others."""

    def __init__(self, url: str, folder: Path) -> None:
        # The program takes a clock from the tests.
        self.environment = {"SHOP_URL": url, "SHOP_FOLDER": str(folder), "PYTHONPATH": str(ROOT)}
        self.folder = folder
        self.module = None

    @contextmanager
    def opened(self, ahead_ms: int = 0):
        """Load the program as whoever submits and sends does."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, "SHOP_AHEAD_MS": str(ahead_ms)}.items():
                patch.setenv(name, value)
            spec = util.spec_from_file_location("shop", PROGRAM)
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
        try:
            yield module
        finally:
            module.app.close()

    @contextmanager
    def worker(self, ahead_ms: int = 0):
        """Run a worker process; it ends by `kill -9`."""
        environment = {**os.environ, **self.environment, "SHOP_AHEAD_MS": str(ahead_ms)}
        process = subprocess.Popen([sys.executable, PROGRAM], env=environment, stdout=subprocess.PIPE)
        try:
            assert process.stdout.readline() == b"working\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()


@pytest.fixture
def shop(url, tmp_path):
    return Shop(url, tmp_path)


def ended(job) -> bool:
    return job.history()[-1].name == "return"


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_the_example_of_the_design_runs_as_written_through_kills(shop):
    with shop.opened() as program:
        app, checkout = program.app, program.checkout
        with app.transaction() as db:
            db.execute("create table reserved (number integer)")
        job = checkout.submit(42)
        with shop.worker():
            wait_until((shop.folder / "charging").exists)  # killed in the middle of a step
        with shop.worker():
            wait_until(lambda: job.history()[-1].name == "suspend")
            assert "for the signal approve until" in job.why()
            job.send("approve", True)
            wait_until(lambda: "for the end of sleep until" in job.why())
        # killed while it sleeps; the next one is started an hour later
        with shop.worker(ahead_ms=HOUR_MS):
            assert job.result("60s") == "packed 42"
            assert asyncio.run(_awaited(job)) == "packed 42"
        with app.connect() as db:
            assert db.execute("select number from reserved") == [(42,)]
            assert db.execute("select count(*) from stale_reports") == [(0,)]
        names = [event.name for event in job.history()]
        assert names.count("reclaim") == 1
        assert (names[0], names[-1]) == ("submit", "return")
        assert job.why().startswith("it succeeded at")


async def _awaited(job) -> str:
    return await job


@pytest.mark.timeout(180)
def test_and_so_does_the_rest_of_it(shop):
    """Once for a key, inside the caller's transaction; cancelled while it waits; forked at a step."""
    (shop.folder / "charging").touch()
    with shop.opened() as program:
        app, checkout = program.app, program.checkout
        with app.transaction() as tx:
            tx.execute("create table reserved (number integer)")
            first = checkout.opts(idempotency_key="o-42", within=tx).submit(42)
        with app.transaction() as tx:
            again = checkout.opts(idempotency_key="o-42", within=tx).submit(42)
        assert (first.created, again.created, again.id) == (True, False, first.id)
        with shop.worker():
            wait_until(lambda: first.history()[-1].name == "suspend")
            assert first.cancel() == "CANCELLED"
            with pytest.raises(JobCancelled):
                first.result("30s")
            fork = first.fork(at="charge")
            wait_until(lambda: fork.history()[-1].name == "suspend")
            fork.send("approve", False)
            assert fork.result("30s") == "declined"
        with app.connect() as db:
            assert db.execute("select number from reserved") == [(42,)]
        assert program.quote(2) == 200  # in a test a step is the plain function
