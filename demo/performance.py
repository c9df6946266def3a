"""The performance: submit, start workers, kill one of them halfway, and watch until all orders are done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from demo.shop import CALLS_A_JOB, CALLS_FILE, PAUSE_UNIT, TABLES, app, checkout
from demo.sight import Job, Look, Sight, boot_ms, wall_ms

TICK_SECONDS = 0.1
SECONDS_MAX = 90.0
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How big the performance is."""

    folder: Path
    orders: int = 200
    workers: int = 3
    slots: int = 8
    lease: str = "2s"
    pause: float = 0.05

    @property
    def database(self) -> Path:
        """Return the path of the database file."""
        return self.folder / "shop.db"

    @property
    def calls(self) -> Path:
        """Return the path of the file in which steps note their calls."""
        return self.folder / "calls.txt"


@dataclass(slots=True)
class Worker:
    """One worker process and what it said about itself."""

    letter: str
    process: subprocess.Popen[str]
    owner: str = ""
    killed: bool = False

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self.process.pid


class Audience(Protocol):
    """Whoever shows the performance."""

    def show(self, look: Look, workers: list[Worker]) -> None:
        """Show one look at the file."""

    def note(self, seconds: float, text: str, style: str = "") -> None:
        """Say what just happened."""


@dataclass(slots=True)
class Record:
    """What is remembered of the performance beyond the file: when the kill came, and whom it met."""

    submit_seconds: float = 0.0
    work_seconds: float = 0.0
    started_ms: int = 0
    kill_ms: int = 0
    kill_boot_ms: int = 0
    victim: Worker | None = None
    held: list[Job] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    last: Look | None = None

    @property
    def kill_at(self) -> float:
        """Return when the kill came, in seconds since the demo began."""
        return self.seconds_of(self.kill_ms)

    def seconds_of(self, at_ms: int) -> float:
        """Return an instant of the file as seconds since the demo began."""
        return (at_ms - self.started_ms) / 1000

    def letter_of(self, owner: str) -> str:
        """Return the letter of a worker."""
        return next((worker.letter for worker in self.workers if worker.owner == owner), "?")


class DemoFailed(Exception):
    """The performance could not be brought to its end."""


def submit_orders(plan: Plan) -> float:
    """Create the file with the shop's tables, submit every order, and return how long the submitting took."""
    app.bind(f"sqlite:///{plan.database}")
    with app.transaction() as db:
        for statement in TABLES.split(";"):
            if statement.strip():
                db.execute(statement)
    plan.calls.touch()
    before = time.monotonic()
    checkout.submit_many((order,) for order in range(1, plan.orders + 1))
    seconds = time.monotonic() - before
    app.close()
    return seconds


def start_workers(plan: Plan) -> list[Worker]:
    """Start the worker processes and return them once each has said its name."""
    environment = os.environ | {
        "TALLY_URL": f"sqlite:///{plan.database}",
        CALLS_FILE: str(plan.calls),
        PAUSE_UNIT: str(plan.pause),
    }
    command = [sys.executable, "-m", "demo.shop", str(plan.slots), plan.lease]
    workers: list[Worker] = []
    try:
        for letter in "ABCDEFGH"[: plan.workers]:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            workers.append(Worker(letter, process))
        for worker in workers:
            assert worker.process.stdout is not None
            worker.owner = worker.process.stdout.readline().strip()
            if not worker.owner:
                raise DemoFailed(f"worker {worker.letter} did not start; its message is above")
    except BaseException:
        stop_workers(workers)
        raise
    return workers


def stop_workers(workers: Iterable[Worker]) -> None:
    """Ask every worker that is alive to end, and see to it."""
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(10)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                pipe.close()


class Performance:
    """The watching: one look at the file a tick, and a `kill -9` when half of the orders are done."""

    def __init__(self, plan: Plan, audience: Audience) -> None:
        """Prepare; nothing has happened yet."""
        self._plan = plan
        self._audience = audience
        self._record = Record()
        self._seen: set[tuple[str, str, int]] = set()

    def play(self) -> Record:
        """Run the whole performance and return what is to be remembered of it."""
        record = self._record
        record.started_ms = wall_ms()
        record.submit_seconds = submit_orders(self._plan)
        sight = Sight(self._plan.database, record.started_ms)
        orders = self._plan.orders
        self._note(f"{orders} orders are durable, submitted in {record.submit_seconds * 1000:.0f} ms")
        record.workers = start_workers(self._plan)
        started = time.monotonic()
        try:
            pids = ", ".join(f"{worker.letter} = pid {worker.pid}" for worker in record.workers)
            self._note(f"{len(record.workers)} workers are up: {pids}")
            self._watch(sight, started)
            if record.victim is None:
                raise DemoFailed("all orders were done before a worker could be killed; take more orders")
            record.work_seconds = time.monotonic() - started
        finally:
            stop_workers(record.workers)
            sight.close()
        return record

    def _watch(self, sight: Sight, started: float) -> None:
        record = self._record
        while True:
            look = record.last = sight.look()
            self._tell_news(look)
            self._audience.show(look, record.workers)
            if look.done == self._plan.orders:
                self._note(f"all {self._plan.orders} orders are done", "green")
                return
            if record.victim is None and 2 * look.done >= self._plan.orders:
                self._kill(sight, look)
            for worker in record.workers:
                if worker.process.poll() is not None and not worker.killed:
                    raise DemoFailed(f"worker {worker.letter} ended by itself ({worker.process.returncode})")
            if time.monotonic() - started > SECONDS_MAX:
                raise DemoFailed(f"after {SECONDS_MAX:.0f} s only {look.done} orders are done")
            time.sleep(TICK_SECONDS)

    def _kill(self, sight: Sight, look: Look) -> None:
        """Kill the worker that holds the most, and read from the file what it left behind."""
        victim = max(self._record.workers, key=lambda worker: _worth(look, worker))
        if not _worth(look, victim):
            return
        record = self._record
        record.kill_ms, record.kill_boot_ms = wall_ms(), boot_ms()
        os.kill(victim.pid, signal.SIGKILL)
        victim.process.wait()
        victim.killed = True
        after = sight.look()
        record.victim, record.held = victim, after.held_by(victim.owner)
        held = numbers(job.order for job in record.held)
        self._note(f"kill -9 {victim.pid}: worker {victim.letter} is dead", "red")
        self._note(f"it held {len(record.held)} orders, leased for {self._plan.lease}: {held}", "red")

    def _tell_news(self, look: Look) -> None:
        orders = {job.job_id: job.order for job in look.jobs}
        fresh = [one for one in look.reclaimed if self._is_new("reclaimed", one.job_id, one.attempt)]
        if fresh:
            at = self._record.seconds_of(fresh[0].at_ms)
            held = numbers(orders[one.job_id] for one in fresh)
            self._audience.note(at, f"leases ran out, taken back: {held}", "yellow")
        taken: dict[tuple[str, str], list[int]] = {}
        at = 0.0
        for one in look.takeovers:
            if self._is_new("taken", one.job_id, one.attempt):
                at = self._record.seconds_of(one.at_ms)
                goes_on = CALLS_A_JOB[one.replayed] if one.replayed < len(CALLS_A_JOB) else "return"
                taken.setdefault((one.owner, goes_on), []).append(orders[one.job_id])
        for (owner, goes_on), some in taken.items():
            letter = self._record.letter_of(owner)
            self._audience.note(at, f"worker {letter} goes on at {goes_on}: {numbers(some)}", "green")

    def _is_new(self, what: str, job_id: str, attempt: int) -> bool:
        key = (what, job_id, attempt)
        fresh = key not in self._seen
        self._seen.add(key)
        return fresh

    def _note(self, text: str, style: str = "") -> None:
        self._audience.note(self._record.seconds_of(wall_ms()), text, style)


def _worth(look: Look, worker: Worker) -> int:
    """Return how much a worker has in its hands: begun jobs count, since their calls must not be repeated."""
    return sum(job.steps > 0 for job in look.held_by(worker.owner))


def numbers(orders: Iterable[int]) -> str:
    """Return order numbers as people list them."""
    return ", ".join(str(order) for order in sorted(orders)) or "none"
