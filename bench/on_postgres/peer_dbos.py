"""DBOS on PostgreSQL, run by the Python of its own environment; prints JSON lines.

Its pool has 32 connections, and its queue is looked at twenty times a second.
"""

from __future__ import annotations

import asyncio
import sys

from dbos import DBOS, DBOSConfig

from bench.dbos_workflows import async_seconds, async_workflow, sync_seconds
from bench.on_postgres.answering import answer, in_lists, one_by_one, wait_for_go

QUEUE = "default"
POLL_SECONDS = 0.05


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
    launch(order)
    return {"seconds": sync_seconds(order)}


def async_jobs(order: dict) -> dict:
    launch(order)
    return {"seconds": async_seconds(order)}


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
        await asyncio.gather(*(DBOS.enqueue_workflow_async(QUEUE, async_workflow, 1) for _ in range(size)))

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
