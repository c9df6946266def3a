"""The same workflows in DBOS, and how so many of them at once are timed; for the Python of its environment.

It keeps one row a step and one a workflow, each in a transaction of its own. Nothing of it is switched off.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS

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


def sync_seconds(order: dict) -> float:
    """Return the seconds of the ordered jobs: each thread starts one, waits for it, starts the next."""
    steps, in_flight = order["steps"], order["in_flight"]

    def one(_number: int) -> None:
        assert DBOS.start_workflow(sync_workflow, steps).get_result() == steps

    with ThreadPoolExecutor(in_flight) as threads:
        barrier = threading.Barrier(in_flight)
        list(threads.map(lambda _: barrier.wait(), range(in_flight)))
        list(threads.map(one, range(WARM_UP_JOBS)))
        begun = time.perf_counter()
        list(threads.map(one, range(order["jobs"])))
        return time.perf_counter() - begun


def async_seconds(order: dict) -> float:
    """Return the seconds of the ordered jobs, gathered behind a semaphore."""
    steps = order["steps"]

    async def measured() -> float:
        places = asyncio.Semaphore(order["in_flight"])

        async def one() -> None:
            async with places:
                assert await async_workflow(steps) == steps

        await asyncio.gather(*(one() for _ in range(WARM_UP_JOBS)))
        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(order["jobs"])))
        return time.perf_counter() - begun

    return asyncio.run(measured())
