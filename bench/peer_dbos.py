"""One measurement of DBOS on SQLite, run by the Python of its own environment; prints one line of JSON.

    python -m bench.peer_dbos '{"case": "sync", "steps": 1, "jobs": 9, "in_flight": 8, "wal": true, ...}'

Logging is limited to errors. `wal` sets the journal of its database file by hand, which is a property of the
file and so holds for every connection. It never sets `synchronous`: what SQLite's default gives is reported.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from importlib.metadata import version
from pathlib import Path

from dbos import DBOS, DBOSConfig

from bench.dbos_workflows import async_seconds, sync_seconds, sync_workflow


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
    path = launch(Path(order["folder"]), wal=order["wal"])
    answer: dict[str, object] = settings(path)
    if order["case"] == "alone":
        steps = order["steps"]
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
        answer["seconds"] = async_seconds(order)
    else:
        answer["seconds"] = sync_seconds(order)
    print(json.dumps(answer), flush=True)
    # Its background threads poll with long sleeps; what was measured is durable, so nothing is left to do.
    os._exit(0)


if __name__ == "__main__":
    main()
