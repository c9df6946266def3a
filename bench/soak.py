"""A soak on PostgreSQL: do the rates hold while books grow and vacuum runs?

    python -m bench.soak --seconds 600

One process submits and runs jobs of two steps with 1 to 10 KB in every payload and result, with some
thousand jobs always waiting. Autovacuum is on and looks every ten seconds. For every tenth of the time
it prints the rate, the sync rate of the disk, the size of the database, dead rows, how many vacuums ran,
and how many changes of jobs stayed on their page. The last line compares the first and the last tenth.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from bench.on_postgres.server import database, running
from bench.side import ROOT
from bench.sync_rate import sync_rate

PARTS = 10
FREE_BYTES_MIN = 5 * 2**30
SETTINGS = {"autovacuum_naptime": "10s", "autovacuum_vacuum_cost_delay": "2ms", "log_min_messages": "fatal"}
GROWN = """
SELECT pg_database_size(current_database()), sum(n_dead_tup)::bigint, sum(autovacuum_count)::bigint,
       coalesce(max(n_tup_hot_upd * 100 / nullif(n_tup_upd, 0)) FILTER (WHERE relname = 'jobs'), 0)::bigint
  FROM pg_stat_user_tables
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600, help="how long (600)")
    parser.add_argument("--in-flight", type=int, default=64, help="jobs at once (64)")
    parser.add_argument("--waiting", type=int, default=2_000, help="jobs in the queue (2000)")
    options = parser.parse_args()
    with (
        running(SETTINGS) as server,
        database(server) as dsn,
        tempfile.TemporaryDirectory(prefix="tallystick-soak-") as folder,
    ):
        rates = soak(dsn, Path(folder), Path(server.folder), options)
    first, last = rates[0], rates[-1]
    held = last >= 0.8 * first
    print(
        f"first tenth {first:,.0f} jobs/s, last tenth {last:,.0f} jobs/s: {last / first:.2f}x,"
        f" the goal is >= 0.8x {'ok' if held else 'MISSED'}"
    )
    return 0


def soak(dsn: str, folder: Path, disk: Path, options: argparse.Namespace) -> list[float]:
    """Run the worker and return its rate in every part of the time."""
    order = {"dsn": dsn, "in_flight": options.in_flight, "waiting": options.waiting}
    worker = subprocess.Popen(
        [sys.executable, "-m", "bench.on_postgres.soaking", json.dumps(order)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    rates = []
    print("   seconds     jobs/s    syncs/s         MiB  dead rows  vacuums  jobs on their page")
    try:
        while not (ended := said(worker)):
            pass
        begun = time.monotonic()
        for part in range(1, PARTS + 1):
            since, before = time.monotonic(), ended
            while time.monotonic() - begun < options.seconds * part / PARTS:
                ended = said(worker)
            rates.append((ended - before) / (time.monotonic() - since))
            show(dsn, folder, time.monotonic() - begun, rates[-1])
            if shutil.disk_usage(disk).free < FREE_BYTES_MIN:
                print("the disk is nearly full: stopped early")
                break
        return rates
    finally:
        worker.stdin.close()
        worker.wait(120)


def said(worker: subprocess.Popen[str]) -> int:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise SystemExit("the worker ended early")
    return int(json.loads(line)["ended"])


def show(dsn: str, folder: Path, seconds: float, rate: float) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        ((size, dead, vacuums, stayed),) = connection.execute(GROWN).fetchall()
    print(
        f"{seconds:>10,.0f} {rate:>10,.0f} {sync_rate(folder):>10,.0f} {size / 2**20:>11,.0f}"
        f" {dead:>10,} {vacuums:>8,} {stayed:>18,} %",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
