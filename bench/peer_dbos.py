"""One measurement of DBOS on SQLite, run by the Python of its own environment; prints one line of JSON.

    python peer_dbos.py '{"case": "sync", "steps": 1, "jobs": 96, "in_flight": 8, "wal": true, "folder": "."}'

DBOS keeps one row a step and one a workflow, each in a transaction of its own. Nothing of it is switched off;
logging is limited to errors. `wal` sets the journal of its database file by hand, which is a property of the
file and so holds for every connection. It never sets `synchronous`: what SQLite's default gives is reported.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from dbos import DBOS, DBOSConfig

WARM_UP_JOBS = 4


@DBOS.step()
def sync_step(number: int) -> int:
    return number


@DBOS.workflow()
def sync_workflow(steps: int) -> int:
    for number in range(steps):
        sync_step(number)
    return steps


@DBOS.step()
async def async_step(number: int) -> int:
    return number


@DBOS.workflow()
async def async_workflow(steps: int) -> int:
    for number in range(steps):
        await async_step(number)
    return steps


def measure_sync(steps: int, jobs: int, in_flight: int) -> float:
    """Return the seconds of `jobs` workflows: each thread starts one, waits for it, starts the next."""

    def one(_number: int) -> None:
        assert DBOS.start_workflow(sync_workflow, steps).get_result() == steps

    with ThreadPoolExecutor(in_flight) as threads:
        barrier = threading.Barrier(in_flight)
        list(threads.map(lambda _: barrier.wait(), range(in_flight)))
        list(threads.map(one, range(WARM_UP_JOBS)))
        begun = time.perf_counter()
        list(threads.map(one, range(jobs)))
        return time.perf_counter() - begun


async def measure_async(steps: int, jobs: int, in_flight: int) -> float:
    """Return the seconds that `jobs` workflows take, gathered behind a semaphore."""
    places = asyncio.Semaphore(in_flight)

    async def one() -> None:
        async with places:
            assert await async_workflow(steps) == steps

    await asyncio.gather(*(one() for _ in range(WARM_UP_JOBS)))
    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(jobs)))
    return time.perf_counter() - begun


def measure_alone(steps: int, jobs: int) -> list[float]:
    """Return the milliseconds of each of `jobs` workflows, one after the other, called directly."""
    taken = []
    for _ in range(jobs):
        begun = time.perf_counter()
        assert sync_workflow(steps) == steps
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def launch(folder: Path, *, wal: bool) -> Path:
    """Start DBOS on a fresh file in the folder and return the path of the file."""
    path = folder / "dbos.sqlite"
    if wal:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{path}",
        "log_level": "ERROR",
        "application_version": "bench",
    }
    DBOS(config=config)
    DBOS.launch()
    return path


def settings(path: Path) -> dict[str, str]:
    """Return how durable a connection to this file is unless somebody asks for something else."""
    connection = sqlite3.connect(path)
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.close()
    return {
        "version": version("dbos"),
        "journal": journal,
        "synchronous": {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}[synchronous],
        "sqlite": sqlite3.sqlite_version,
    }


def main() -> None:
    order = json.loads(sys.argv[1])
    steps, jobs, in_flight = order["steps"], order["jobs"], order.get("in_flight", 1)
    path = launch(Path(order["folder"]), wal=order["wal"])
    answer: dict[str, object] = settings(path)
    if order["case"] == "alone":
        measure_alone(steps, 5)
        print(json.dumps({"ready": True}), flush=True)
        taken: list[float] = []
        # One job a line that arrives, so that both sides can take turns job by job.
        for line in sys.stdin:
            one = measure_alone(steps, int(line))
            taken += one
            print(json.dumps(one), flush=True)
        answer["milliseconds"] = taken
    elif order["case"] == "async":
        answer["seconds"] = asyncio.run(measure_async(steps, jobs, in_flight))
    else:
        answer["seconds"] = measure_sync(steps, jobs, in_flight)
    print(json.dumps(answer), flush=True)
    # Its background threads poll with long sleeps; what was measured is durable, so nothing is left to do.
    os._exit(0)


if __name__ == "__main__":
    main()
