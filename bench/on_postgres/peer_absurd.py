"""Absurd on PostgreSQL, run by the Python of its own environment; prints JSON lines.

A client has one connection, so it is given several: as many as there are callers, and eight workers in a
process. A step and a completion are one function call and one transaction each; the result is kept.
"""

from __future__ import annotations

import asyncio
import time

import psycopg
from absurd_sdk import AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL

from bench.on_postgres.answering import answer_async, in_lists, one_by_one, until_the_end, wait_for_go

WORKERS = 8
LIST = 50


async def client(order: dict) -> AsyncAbsurd:
    app = AsyncAbsurd(order["dsn"])

    @app.register_task("job")
    async def job(params: dict, context) -> int:
        for number in range(params["steps"]):

            async def step(number: int = number) -> int:
                return number

            await context.step("step", step)
        return params["steps"]

    return app


async def opened(order: dict, clients: int) -> list[AsyncAbsurd]:
    async with await psycopg.AsyncConnection.connect(order["dsn"], autocommit=True) as connection:
        found = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'absurd'")
        fresh = await found.fetchone() is None
        if fresh:
            await connection.execute(BUNDLED_SCHEMA_SQL)
    apps = [await client(order) for _ in range(clients)]
    if fresh:
        await apps[0].create_queue()
    return apps


async def one(order: dict) -> dict:
    apps = await opened(order, order["callers"])
    return await one_by_one(order, lambda caller: apps[caller].spawn("job", {"steps": 1}))


async def bulk(order: dict) -> dict:
    """Spawn one by one on several connections: it has no way to spawn many."""
    apps = await opened(order, 16)

    async def spawn(app: AsyncAbsurd, times: int) -> None:
        for _ in range(times):
            await app.spawn("job", {"steps": 1})

    async def enqueue(size: int) -> None:
        await asyncio.gather(*(spawn(app, size // len(apps)) for app in apps))

    return await in_lists({**order, "size": 16 * LIST}, enqueue)


async def fill(order: dict) -> dict:
    apps = await opened(order, 16)

    async def spawn(app: AsyncAbsurd, times: int) -> None:
        for _ in range(times):
            await app.spawn("job", {"steps": order["steps"]})

    await asyncio.gather(*(spawn(app, order["jobs"] // len(apps)) for app in apps))
    return {"jobs": order["jobs"] // len(apps) * len(apps)}


async def workers(order: dict) -> list[asyncio.Task]:
    apps = await opened(order, WORKERS)
    share = max(1, order["in_flight"] // WORKERS)
    return [
        asyncio.create_task(app.start_worker(f"worker-{number}", concurrency=share, poll_interval=0.02))
        for number, app in enumerate(apps)
    ]


async def work(order: dict) -> dict:
    await opened(order, 1)
    wait_for_go()
    running = await workers(order)
    await until_the_end(*running)
    return {}


async def throughput(order: dict) -> dict:
    """Spawn jobs and wait until all of them are done, with the workers in this process."""
    await opened(order, 1)
    running = await workers(order)
    begun = time.perf_counter()
    filled = await fill(order)
    async with await psycopg.AsyncConnection.connect(order["dsn"], autocommit=True) as connection:
        while True:
            left = await connection.execute(
                "SELECT 1 FROM absurd.t_default WHERE state <> 'completed' LIMIT 1"
            )
            if await left.fetchone() is None:
                break
            await asyncio.sleep(0.02)
    seconds = time.perf_counter() - begun
    for task in running:
        task.cancel()
    return {"seconds": seconds, "jobs": filled["jobs"]}


if __name__ == "__main__":
    answer_async({"async": throughput, "one-async": one, "bulk": bulk, "fill": fill, "work": work})
