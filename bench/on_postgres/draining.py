"""How fast worker processes empty a queue that was filled before; the clock is outside of them."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg

from bench.on_postgres.server import database
from bench.on_postgres.sides import Member
from bench.side import Measured, SideFailed, measure
from bench.sync_rate import sync_rate
from tallystick.testing.postgres_server import Server

LOOK_SECONDS = 0.02
SECONDS_MAX = 600


def drain(server: Server, member: Member, folder: Path, *, jobs: int, steps: int, processes: int) -> Measured:
    """Fill a fresh queue, start the workers, and time from the word go until no job is open."""
    with database(server) as dsn:
        order = {"jobs": jobs, "steps": steps, "in_flight": member.at_once, "dsn": dsn}
        filled = measure(member.side, folder, case="fill", **order)
        before = sync_rate(folder)
        with ExitStack() as stack:
            workers = [start(member, {**order, "case": "work"}) for _ in range(processes)]
            for worker in workers:
                stack.callback(stop, worker)
            for worker in workers:
                told(worker, member)
            begun = time.perf_counter()
            for worker in workers:
                say_go(worker)
            wait_until_empty(dsn, member)
            seconds = time.perf_counter() - begun
        return Measured({"seconds": seconds, "jobs": filled.answer["jobs"]}, (before, sync_rate(folder)))


def start(member: Member, order: dict[str, object]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*member.side.command, json.dumps(order)],
        cwd=member.side.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def told(worker: subprocess.Popen[str], member: Member) -> None:
    assert worker.stdout is not None
    if not worker.stdout.readline():
        raise SideFailed(f"a worker of {member.side.name} ended before it was ready")


def say_go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def stop(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.close()
    try:
        worker.wait(30)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    if worker.stdout is not None:
        worker.stdout.close()


def wait_until_empty(dsn: str, member: Member) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    with psycopg.connect(dsn, autocommit=True, options="-c enable_seqscan=off") as connection:
        while connection.execute(member.open_jobs.encode()).fetchone() is not None:
            if time.monotonic() > deadline:
                raise SideFailed(f"{member.side.name} did not empty its queue in {SECONDS_MAX} s")
            time.sleep(LOOK_SECONDS)
