"""One measurement of what waiting costs, in a process of its own; prints a JSON line.

    python bench/waits_ours.py '{"case": "again", "turns": 300, "folder": "."}'

It imports nothing of `bench`, so that the environment of another revision can run it. `again`: a job turns
so often. `children`: an async parent awaits so many children one after the other; told for the first and the
last fifty. `waiters`: so many jobs wait, each is sent its signal, until the last has ended. `batches`: jobs
are suspended, told, claimed, answered and ended in the store alone, sixteen at a time. Each tells the seconds
that went by and the processor time of this process and, on PostgreSQL, of its backends.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tallystick import Tally, again, wait
from tallystick.clock import SystemClock
from tallystick.store.api import Await, Deliver, Fact, Store, TakeAnswer, Wait
from tallystick.testing.conformance.drafts import claim, finish, submission

BATCH = 16
SENDERS = 32
FEW = 50
PATIENCE_SECONDS = 600

app = Tally()
ends: list[float] = []


@app.workflow
def loop(left: int) -> int:
    return again(left - 1) if left else 7


@app.workflow
async def leaf(number: int) -> int:
    ends.append(time.perf_counter())
    return number


@app.workflow
async def parent(count: int) -> int:
    total = 0
    for number in range(count):
        total += await leaf(number)
    return total


@app.workflow
def waiter() -> int:
    return wait("go", int)


class Spent:
    """Seconds, and processor time of this process and of the backends of its database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._begun = time.perf_counter(), time.process_time(), self._server()

    def _server(self) -> float:
        if not self._url:
            return 0.0
        import psycopg  # noqa: PLC0415 (SQLite needs none)

        asked = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(self._url, autocommit=True) as connection:
            pids = [pid for (pid,) in connection.execute(asked)]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9

    def since(self) -> dict[str, float]:
        seconds, own, server = self._begun
        return {
            "seconds": time.perf_counter() - seconds,
            "cpu": time.process_time() - own,
            "server_cpu": self._server() - server,
        }


def measure_again(order: dict[str, Any]) -> dict[str, Any]:
    with app.worker():
        loop.submit(5).result(timeout=PATIENCE_SECONDS)
        spent = Spent(order.get("url", ""))
        assert loop.submit(order["turns"]).result(timeout=PATIENCE_SECONDS) == 7
        return spent.since()


def measure_children(order: dict[str, Any]) -> dict[str, Any]:
    with app.worker():
        parent.submit(3).result(timeout=PATIENCE_SECONDS)
        ends.clear()
        spent = Spent(order.get("url", ""))
        parent.submit(order["children"]).result(timeout=PATIENCE_SECONDS)
        few = {"first": ends[FEW] - ends[0], "last": ends[-1] - ends[-1 - FEW]}
        return spent.since() | {name: seconds / FEW * 1000 for name, seconds in few.items()}


def measure_waiters(order: dict[str, Any]) -> dict[str, Any]:
    with app.worker(concurrency=order["in_flight"]):
        jobs = waiter.submit_many([()] * order["jobs"])
        worker = app.runtime().worker
        while worker.running or not worker.idle:
            time.sleep(0.01)
        committer = app.runtime().committer
        spent, flushes = Spent(order.get("url", "")), committer.flushes
        with ThreadPoolExecutor(SENDERS) as senders:
            list(senders.map(lambda job: job.send("go", 7), jobs))
        assert {job.result(timeout=PATIENCE_SECONDS) for job in jobs} == {7}
        return spent.since() | {"flushes": committer.flushes - flushes}


def measure_batches(order: dict[str, Any]) -> dict[str, Any]:
    store, clock = app.runtime().store, SystemClock()
    course(store, clock)
    spent = Spent(order.get("url", ""))
    for _ in range(order["rounds"]):
        course(store, clock)
    return spent.since()


def course(store: Store, clock: SystemClock) -> None:
    def waiting(job: Any) -> Any:
        fact = Fact(job.chain, "suspend", clock.wall_ms(), job.fence.attempt, "{}")
        return (Await(job.fence, job.driver, job.dimension, (Wait("wait", "go", 1, None),), fact),)

    def ending(job: Any) -> Any:
        take = TakeAnswer(job.fence, job.chain, 0, Wait("wait", "go", 1, None), job.wake, clock.wall_ms())
        return (take, finish(job, clock)._replace(driver=job.driver))

    store.apply([(submission(clock),) for _ in range(BATCH)])
    (jobs,) = store.apply([(claim(BATCH),)])
    store.apply([waiting(job) for job in jobs])
    told = [Deliver(f"{job.fence.job_id}:go", job.fence.job_id, "signal", "go", "7") for job in jobs]
    store.apply([(each,) for each in told])
    (woken,) = store.apply([(claim(BATCH),)])
    assert len(woken) == BATCH
    assert store.apply([ending(job) for job in woken]) == [None] * BATCH


CASES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "again": measure_again,
    "children": measure_children,
    "waiters": measure_waiters,
    "batches": measure_batches,
}


def main() -> None:
    order = json.loads(sys.argv[1])
    app.bind(order.get("url") or f"sqlite:///{Path(order['folder']) / 'ours.db'}")
    answer = CASES[order["case"]](order)
    app.close()
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
