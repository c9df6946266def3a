"""One measurement of limits, schedules or series, in a process of its own; prints one line of JSON.

    python -m bench.operating_ours '{"case": "limited", "jobs": 500, "keys": 50, "limits": {}, "folder": "."}'

`limited`: jobs wait in a queue with limits; the clock runs from the start of a worker of 64 slots to the last
end, by the rows. `schedules`: so many are due at one instant; from there to the last job that they made.
`watched`: the processor time of the series of a process as a share of that of its jobs.
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
from tallystick.engine.observe import Claimed, Flushed, Observers, Renewed, SegmentLeft
from tallystick.watch.process_series import ProcessSeries

SLOTS = 64
KINDS = (Claimed, Flushed, Renewed, SegmentLeft)
TURN_JOBS = 200
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


def watched(order: dict, url: str) -> dict:
    """Return the processor time of series as a share of that of the jobs, in turns of some jobs.

    What happens in a turn is told to the series afterwards, by itself: two turns of jobs differ by more than
    the series cost.
    """
    app = Tally(url)

    @app.step
    async def step(number: int) -> int:
        return number

    @app.workflow
    async def work(number: int) -> int:
        return await step(number)

    def turn() -> float:
        """Run some jobs and return the processor time that they took."""
        cpu = time.process_time()
        for job in work.submit_many([(number,) for number in range(TURN_JOBS)]):
            job.result(timeout=120)
        return time.process_time() - cpu

    series, shares, observers = Observers(), list[float](), app.runtime().observers
    ProcessSeries(series)
    happened: list[tuple] = []
    with app.worker(concurrency=SLOTS):
        turn()
        for _ in range(order["jobs"] // (2 * TURN_JOBS)):
            jobs = turn()
            stops = [observers.on(kind, happened.append) for kind in KINDS]
            turn()
            for stop in stops:
                stop()
            cpu = time.process_time()
            for each in happened:
                series.tell(type(each)(*each))
            shares.append((time.process_time() - cpu) / jobs)
            happened.clear()
    app.close()
    return {"share": statistics.median(shares), "from_to": [min(shares), max(shares)], "turns": len(shares)}


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"]).resolve()
    url = f"sqlite:///{folder}/books.db"
    cases = {
        "limited": lambda: limited(order, url),
        "schedules": lambda: schedules(order, url),
        "watched": lambda: watched(order, url),
    }
    print(json.dumps(cases[order["case"]]()))


if __name__ == "__main__":
    main()
