"""How soon the dashboard answers with many jobs: `python -m bench.pages --jobs 1000000 [--postgres]`.

A store is filled with queued jobs, and with some that have failed, are held or have ended. Each page is then
asked for as a browser asks, several times; the figures are the processor time and the time gone by until the
first byte, the best of all rounds, the processor time of a PostgreSQL server for one of them, on average, and
the size of the page as it travels.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from bench.on_postgres.server import database, running
from tallystick import JobFailed, Tally
from tallystick.app.remote.api_keys import make_key
from tallystick.dashboard import dashboard_app
from tallystick.testing.postgres_server import Server

IN_LIST = 10_000
# Jobs that ended before the many that wait were submitted, and after: a third of them has failed.
OLD_ENDED = 100_000
ENDED = 2_000
HELD = 500
# A page that takes longer than this until its first byte is too slow.
FIRST_BYTE_MS = 50
PATIENCE = 600
SCOPES = ("jobs:read", "jobs:write", "admin")
PAGES = (
    "/",
    "/jobs",
    "/jobs?state=QUEUED&workflow=parcel",
    "/jobs?state=FAILED_FINAL",
    "/jobs?error=label",
    "/jobs?error=nothing+like+it",
    "/jobs?error=nothing+like+it&workflow=parcel&state=FAILED_FINAL",
    "/jobs?held=yes",
    "/jobs?dead=yes",
    "/jobs?until=1s",
    "/jobs?parent={job}",
    "/jobs?key=none",
    "/jobs?tag=rare",
    "/jobs?queue=parcels&state=CANCELLED",
    "/attention",
    "/effects",
    "/effects?show=ended",
    "/outbox",
    "/outbox?show=dead",
    "/queues",
    "/workers",
    "/schedules",
    "/jobs/{job}",
    "/jobs/{job}?tab=history",
    "/jobs/{job}?tab=books",
    "/jobs/{job}?tab=graph",
    "/bulk/retry?workflow=parcel",
    "/runs",
    "/lifecycles",
)


def fill(app: Tally, jobs: int) -> str:
    """Fill a store and return the name of a job that has failed."""

    @app.workflow(queue="parcels")
    def parcel(number: int) -> None:
        if number % 3 == 0:
            raise ValueError(f"no label for parcel {number}")

    @app.workflow(queue="letters")
    def letter(number: int) -> None: ...

    def end(number: int, more: Sequence[Any] = ()) -> None:
        made = parcel.opts(idempotent=False).submit_many([(each,) for each in range(number)])
        with app.worker(queues=["parcels", "letters"], concurrency=16):
            for job in (*made, *more):
                with suppress(JobFailed):
                    job.result(PATIENCE)

    end(OLD_ENDED)
    for first in range(0, jobs, IN_LIST):
        flow = parcel if first // IN_LIST % 2 else letter
        flow.opts(queue="waiting").submit_many([(number,) for number in range(first, first + IN_LIST)])
    rare = parcel.opts(tags=["rare"]).submit(3)
    end(ENDED, [rare])
    for job in letter.opts(queue="held").submit_many([(number,) for number in range(HELD)]):
        job.pause("looked at by a person")
    app.queues.set("waiting", concurrency=10)
    return rare.id


def processor_ms(server: Server | None) -> float:
    """Return the processor time that a server has used so far; the kernel counts it in ticks of 10 ms."""
    if server is None:
        return 0.0
    first = int((server.data / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _name, _, rest = stat.read_text().rpartition(") ")
            fields = rest.split()
            if first in (int(fields[1]), int(stat.parent.name)):
                ticks += int(fields[11]) + int(fields[12])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


async def first_byte(http: httpx.AsyncClient, path: str, rounds: int) -> tuple[float, float, int]:
    """Return the best processor time and the best time gone by until a page begins, and its size in gzip."""
    best_cpu, best, size = float("inf"), float("inf"), 0
    for _ in range(rounds):
        cpu, gone = time.process_time(), time.perf_counter()
        async with http.stream("GET", path) as answer:
            best = min(best, time.perf_counter() - gone)
            best_cpu = min(best_cpu, time.process_time() - cpu)
            answer.raise_for_status()
            size = len(gzip.compress(await answer.aread()))
    return best_cpu, best, size


async def measure(app: Tally, job: str, rounds: int, server: Server | None) -> None:
    """Ask for every page and print its figures."""
    runtime = app.runtime()
    key = make_key(runtime.committer, runtime.ids, "default", SCOPES, ())[1]
    pages = dashboard_app(app, hosts=["bench.test"])
    transport: Any = httpx.ASGITransport(app=pages)
    async with httpx.AsyncClient(transport=transport, base_url="http://bench.test") as http:
        await http.post("/login", data={"key": key})
        print("| page | CPU ms | of the server | ms gone by | KB gzipped |\n|---|---|---|---|---|")
        slow = []
        for page in PAGES:
            before = processor_ms(server)
            cpu, gone, size = await first_byte(http, page.format(job=job), rounds)
            served = (processor_ms(server) - before) / rounds
            figures = f"{cpu * 1e3:.0f} | {served:.1f} | {gone * 1e3:.0f} | {size / 1024:.1f}"
            print(f"| `{page}` | {figures} |", flush=True)
            slow += [page] if gone * 1e3 > FIRST_BYTE_MS else []
        verdict = (
            f"slower than {FIRST_BYTE_MS} ms: {', '.join(slow)}" if slow else f"all within {FIRST_BYTE_MS} ms"
        )
        print(f"\n{len(PAGES)} pages, {verdict}")
    pages.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pages", description="How soon the dashboard answers."
    )
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    logging.getLogger("tallystick.job").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        server = stack.enter_context(running()) if options.postgres else None
        if server is not None:
            url = stack.enter_context(database(server))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tallystick-bench-")))
            url = f"sqlite:///{folder / 'books.db'}"
        app = Tally(url)
        stack.callback(app.close)
        began = time.process_time()
        job = fill(app, options.jobs)
        print(
            f"{options.jobs:,} jobs after {time.process_time() - began:.0f} s of our processor time\n",
            flush=True,
        )
        asyncio.run(measure(app, job, options.rounds, server))
    return 0


if __name__ == "__main__":
    sys.exit(main())
