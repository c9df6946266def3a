"""One measurement of waiting in Tallystick, in a process of its own; prints JSON lines.

    python -m bench.waiting_ours '{"case": "fan", "children": 100, "in_flight": 64, "folder": "."}'

`fan`: a workflow gathers children, which the worker of this process runs, and adds up their results; the
clock runs from the submission of the parent to its result. `signal`: a job waits for a signal; as many round
trips as each line of standard input says, from the sending to the awaited result. `sleepers`: many jobs sleep
until one instant; the clock runs from there to the durable end of the last. Everything is at its default.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bench.memory_of import resident_kib
from tallystick import Tally, aio, sleep, wait
from tallystick.engine.observe import JobFinished

SUBMITTED_AT_ONCE = 1_000
# Enough for every sleeper to be asleep before the first is to wake.
SECONDS_TO_FALL_ASLEEP = 0.004

app = Tally()


@app.workflow
async def leaf(number: int) -> int:
    return number


@app.workflow
async def fan(children: int) -> int:
    return sum(await aio.gather(*(leaf.child(number) for number in range(children))))


@app.workflow
def waiter() -> int:
    return wait("go", int)


@app.workflow
def sleeper(until: float) -> None:
    sleep(max(0.001, until - time.time()))


def measure_fan(order: dict[str, Any]) -> dict[str, Any]:
    """Run a parent and its children, and count the rows of the parent without its children's messages."""
    children = order["children"]
    with app.worker(concurrency=order["in_flight"]):
        assert fan.submit(5).result(timeout=60) == 10
        committer = app.runtime().committer
        flushes, begun = committer.flushes, time.perf_counter()
        job = fan.submit(children)
        assert job.result(timeout=600) == children * (children - 1) // 2
        seconds = time.perf_counter() - begun
        rows = rows_of(job.id)
    return {
        "seconds": seconds,
        "flushes": committer.flushes - flushes,
        "rows_of_parent": rows,
        "resident_kib": resident_kib(),
    }


def rows_of(job_id: str) -> int:
    """Return how many rows a job has in all tables, without the messages of its children."""
    with app.connect() as db:
        ((count,),) = db.execute(
            "select (select count(*) from jobs where job_id = ?1)"
            " + (select count(*) from attempts where job_id = ?1)"
            " + (select count(*) from steps where job_id = ?1)"
            " + (select count(*) from events where job_id = ?1)"
            " + (select count(*) from messages where job_id = ?1 and kind <> 'child')",
            [job_id],
        )
    return int(count)


def measure_signals(order: dict[str, Any]) -> dict[str, Any]:
    """Take turns: so many round trips a line."""
    with app.worker(concurrency=order["in_flight"]):
        flushes = sum(round_trip(0)[1] for _ in range(5)) / 5
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            print(json.dumps([round_trip(number)[0] for number in range(int(line))]), flush=True)
    return {"flushes": flushes}


def round_trip(number: int) -> tuple[float, int]:
    """Return the milliseconds and flushes from the sending of a signal to the result of who waited for it."""
    runtime = app.runtime()
    job = waiter.submit()
    while runtime.worker.running:
        time.sleep(0.001)
    flushes, begun = runtime.committer.flushes, time.perf_counter()
    job.send("go", number)
    assert job.result(timeout=60) == number
    return (time.perf_counter() - begun) * 1000, runtime.committer.flushes - flushes


def measure_sleepers(order: dict[str, Any]) -> dict[str, Any]:
    """Put all jobs to sleep, then count their ends as they become durable."""
    left, done = order["jobs"], threading.Event()

    def ended(_end: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    until = time.time() + 2 + order["jobs"] * SECONDS_TO_FALL_ASLEEP
    with app.worker(concurrency=order["in_flight"]):
        runtime = app.runtime()
        runtime.observers.on(JobFinished, ended)
        for start in range(0, order["jobs"], SUBMITTED_AT_ONCE):
            sleeper.submit_many([(until,)] * min(SUBMITTED_AT_ONCE, order["jobs"] - start))
        while left and (runtime.worker.running or not all_asleep(until)):
            time.sleep(0.01)
        late = time.time() > until
        flushes = runtime.committer.flushes
        assert done.wait(600)
        return {
            "seconds": time.time() - until,
            "late": late,
            "flushes": runtime.committer.flushes - flushes,
        }


def all_asleep(until: float) -> bool:
    """Tell whether nothing is due before the instant at which all are to wake."""
    due = app.runtime().store.next_due(["default"])
    return due is not None and due >= (until - 1) * 1000


def main() -> None:
    order = json.loads(sys.argv[1])
    app.bind(order.get("url") or f"sqlite:///{Path(order['folder']) / 'ours.db'}")
    cases = {"fan": measure_fan, "signal": measure_signals, "sleepers": measure_sleepers}
    answer = cases[order["case"]](order)
    app.close()
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
