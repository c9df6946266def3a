"""One measurement of limits, schedules or series, in a process of its own; prints one line of JSON.

    python -m bench.operating_ours '{"case": "limited", "jobs": 500, "keys": 50, "limits": {}, "folder": "."}'

`limited`: jobs wait in a queue with limits; the clock runs from the start of a worker of 64 slots to the last
end, by the rows. `schedules`: so many are due at one instant; from there to the last job that they made.
`watched`: the processor time of jobs with the series of a process, in turns with jobs that nobody watches.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tallystick import Tally
from tallystick.watch.process_series import ProcessSeries

SLOTS = 64
TURN_JOBS = 250
# What it takes to add a schedule where the machine is slow; they are all there before their instant.
ADDING_SECONDS = 0.006
OPEN = "SELECT count(*) FROM jobs WHERE completed_at IS NULL"
MADE = "SELECT count(*), max(created_at) FROM jobs"


def limited(order: dict, url: str) -> dict:
    app = Tally(url)

    @app.step
    def step(number: int) -> int:
        return number

    @app.workflow
    def work(number: int) -> int:
        return step(number)

    jobs, keys = order["jobs"], order["keys"]
    if order["limits"]:
        app.queue("q", **order["limits"])
    for key in range(keys):
        keyed = work.opts(queue="q", limit_key=f"k{key}") if keys > 1 else work.opts(queue="q")
        keyed.submit_many([(number,) for number in range(jobs // keys)])
    cpu = time.process_time()
    begun = time.perf_counter()
    with app.worker(concurrency=SLOTS, queues=["q"]), app.connect() as connection:
        while list(connection.execute(OPEN)) != [(0,)]:
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
    answer = {"seconds": seconds, "jobs": jobs, "cpu_us": (time.process_time() - cpu) / jobs * 1e6}
    app.close()
    return answer


def schedules(order: dict, url: str) -> dict:
    app, count = Tally(url), order["jobs"]

    @app.workflow(queue="later")
    def report(number: int) -> int:
        return number

    at = datetime.now(UTC) + timedelta(seconds=2 + count * ADDING_SECONDS)
    with ThreadPoolExecutor(SLOTS) as threads:
        list(threads.map(lambda n: app.schedules.add(f"s{n}", report, at, args=(n,)), range(count)))
    assert datetime.now(UTC) < at, "adding them took too long"
    cpu = time.process_time()
    with app.worker(queues=["none"]), app.connect() as connection:
        while True:
            ((there, last),) = connection.execute(MADE)
            if there == count:
                break
            time.sleep(0.05)
    seconds = last / 1000 - at.timestamp()
    answer = {"seconds": seconds, "jobs": count, "cpu_us": (time.process_time() - cpu) / count * 1e6}
    app.close()
    return answer


def watched(order: dict, folder: Path) -> dict:
    """Return the ratios of pairs of turns: watched against not, and as a control two that are not."""
    sides = [
        _Watched(f"sqlite:///{folder}/{name}.db", series=name == "series")
        for name in ("one", "series", "two")
    ]
    for side in sides:
        side.turn()
    with_series, control = [], []
    for number in range(order["jobs"] // TURN_JOBS):
        taken = {}
        for at in ((0, 1, 2), (2, 1, 0))[number % 2]:
            taken[at] = sides[at].turn()
        plain = (taken[0] + taken[2]) / 2
        with_series.append(taken[1] / plain)
        control.append(taken[0] / taken[2])
    for side in sides:
        side.close()
    return {
        "ratio": statistics.median(with_series),
        "control": statistics.median(control),
        "cpu_us": plain / TURN_JOBS * 1e6,
        "turns": len(with_series),
    }


class _Watched:
    """A program with a worker, watched by the series of its process or by nobody."""

    def __init__(self, url: str, *, series: bool) -> None:
        self._app = app = Tally(url)

        @app.step
        async def step(number: int) -> int:
            return number

        @app.workflow
        async def work(number: int) -> int:
            return await step(number)

        self._work = work
        self._series = ProcessSeries(app.runtime().observers) if series else None
        self._worker = app.worker(concurrency=SLOTS)
        self._worker.__enter__()

    def turn(self) -> float:
        """Run some jobs and return the processor time that they took."""
        cpu = time.process_time()
        for job in self._work.submit_many([(number,) for number in range(TURN_JOBS)]):
            job.result(timeout=120)
        return time.process_time() - cpu

    def close(self) -> None:
        self._worker.__exit__(None, None, None)
        self._app.close()


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"]).resolve()
    url = f"sqlite:///{folder}/books.db"
    cases = {
        "limited": lambda: limited(order, url),
        "schedules": lambda: schedules(order, url),
        "watched": lambda: watched(order, folder),
    }
    print(json.dumps(cases[order["case"]]()))


if __name__ == "__main__":
    main()
