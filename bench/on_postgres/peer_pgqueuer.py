"""PgQueuer on PostgreSQL, run by the Python of its own environment; prints JSON lines.

Its fastest way: asyncpg, uvloop, dequeues and completions in batches. It deletes a job that is done,
writes a line to its log, and keeps no result. Completions are buffered for up to 100 ms, so a crash
repeats what was done meanwhile.
"""

from __future__ import annotations

import asyncio
import logging

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.on_postgres.answering import answer_async, in_lists, one_by_one, until_the_end, wait_for_go

logging.disable(logging.WARNING)
PAYLOAD = b'{"steps":1}'


async def installed(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    await connection.close()


async def one(order: dict) -> dict:
    await installed(order["dsn"])
    async with asyncpg.create_pool(
        order["dsn"], min_size=order["callers"], max_size=order["callers"]
    ) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        return await one_by_one(order, lambda _caller: queries.enqueue("job", PAYLOAD))


async def bulk(order: dict) -> dict:
    await installed(order["dsn"])
    connection = await asyncpg.connect(order["dsn"])
    queries = Queries(AsyncpgDriver(connection))

    async def enqueue(size: int) -> None:
        await queries.enqueue(["job"] * size, [PAYLOAD] * size, [0] * size)

    return await in_lists(order, enqueue)


async def fill(order: dict) -> dict:
    await installed(order["dsn"])
    connection = await asyncpg.connect(order["dsn"])
    queries = Queries(AsyncpgDriver(connection))
    jobs = order["jobs"]
    for start in range(0, jobs, 1_000):
        size = min(1_000, jobs - start)
        await queries.enqueue(["job"] * size, [PAYLOAD] * size, [0] * size)
    await connection.execute("ANALYZE")
    return {"jobs": jobs}


async def work(order: dict) -> dict:
    pool = await asyncpg.create_pool(order["dsn"], min_size=4, max_size=4)
    manager = QueueManager(Queries(AsyncpgPoolDriver(pool)))

    @manager.entrypoint("job")
    async def job(_job: object) -> None:
        return

    wait_for_go()
    working = asyncio.create_task(manager.run(batch_size=order["in_flight"]))
    await until_the_end(working)
    return {}


if __name__ == "__main__":
    answer_async({"one-async": one, "bulk": bulk, "fill": fill, "work": work}, run=uvloop.run)
