"""DBOS on PostgreSQL, run by the Python of its own environment; prints JSON lines.

It keeps one row a step and one a workflow, each in a transaction of its own. Nothing of it is switched off; its pool has
a connection for every job in flight, and its queue is looked at as often as it allows to be told.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answer, in_lists, one_by_one, wait_for_go
from dbos import DBOS, DBOSConfig

QUEUE = "default"
POLL_SECONDS = 0.05


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


def launch(order: dict) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": order["dsn"],
        "log_level": "ERROR",
        "application_version": "bench",
        "sys_db_pool_size": 32,
    }
    DBOS(config=config)
    if order["case"] != "work":
        # Whoever only enqueues is not to work on the queue as well.
        DBOS.listen_queues([])
    DBOS.launch()


def sync_jobs(order: dict) -> dict:
    """Each thread starts a workflow, waits for it, starts the next."""
    launch(order)
    steps, in_flight = order["steps"], order["in_flight"]

    def one(_number: int) -> None:
        assert DBOS.start_workflow(sync_workflow, steps).get_result() == steps

    with ThreadPoolExecutor(in_flight) as threads:
        barrier = threading.Barrier(in_flight)
        list(threads.map(lambda _: barrier.wait(), range(in_flight)))
        list(threads.map(one, range(4)))
        begun = time.perf_counter()
        list(threads.map(one, range(order["jobs"])))
        return {"seconds": time.perf_counter() - begun}


def async_jobs(order: dict) -> dict:
    """All workflows are gathered behind a semaphore."""
    launch(order)
    steps = order["steps"]

    async def measured() -> float:
        places = asyncio.Semaphore(order["in_flight"])

        async def one() -> None:
            async with places:
                assert await async_workflow(steps) == steps

        await asyncio.gather(*(one() for _ in range(4)))
        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(order["jobs"])))
        return time.perf_counter() - begun

    return {"seconds": asyncio.run(measured())}


def queue() -> object:
    return DBOS.register_queue(QUEUE, polling_interval_sec=POLL_SECONDS)


def one_async(order: dict) -> dict:
    launch(order)
    queue()
    return asyncio.run(
        one_by_one(order, lambda _caller: DBOS.enqueue_workflow_async(QUEUE, async_workflow, 1))
    )


def bulk(order: dict) -> dict:
    """Enqueue one by one, many at once: it has no way to enqueue a list."""
    launch(order)
    queue()

    async def enqueue(size: int) -> None:
        await asyncio.gather(
            *(DBOS.enqueue_workflow_async(QUEUE, async_workflow, 1) for _ in range(size))
        )

    return asyncio.run(in_lists({**order, "size": min(order["size"], 64)}, enqueue))


def fill(order: dict) -> dict:
    bulk({**order, "size": 64, "jobs": order["jobs"] - 64})
    return {"jobs": order["jobs"]}


def work(order: dict) -> dict:
    wait_for_go()
    launch(order)
    queue()
    sys.stdin.read()
    return {}


if __name__ == "__main__":
    answer(
        {
            "async": async_jobs,
            "sync": sync_jobs,
            "one-async": one_async,
            "bulk": bulk,
            "fill": fill,
            "work": work,
        }
    )
