"""Oban for Python on PostgreSQL, run by a Python of its own, 3.12 or newer; prints JSON lines.

Jobs are fetched in batches and acknowledged one by one or in batches as they come; a row is kept for
each and no result.
"""

from __future__ import annotations

import uvloop
from oban import Oban, worker
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

from bench.on_postgres.answering import answer_async, in_lists, one_by_one, wait_for_end, wait_for_go


@worker(queue="default")
class One:
    async def process(self, _job: object) -> None:
        return


async def opened(order: dict, *, connections: int) -> AsyncConnectionPool:
    pool = AsyncConnectionPool(order["dsn"], min_size=connections, max_size=connections, open=False)
    await pool.open(wait=True)
    async with pool.connection() as connection:
        found = await connection.execute("SELECT 1 FROM pg_class WHERE relname = 'oban_jobs'")
        fresh = await found.fetchone() is None
    if fresh:
        await install(pool)
    return pool


async def one(order: dict) -> dict:
    oban = Oban(pool=await opened(order, connections=order["callers"]))
    return await one_by_one(order, lambda _caller: oban.enqueue(One.new({"steps": 1})))


async def bulk(order: dict) -> dict:
    oban = Oban(pool=await opened(order, connections=2))
    return await in_lists(
        order, lambda size: oban.enqueue_many(*(One.new({"steps": 1}) for _ in range(size)))
    )


async def fill(order: dict) -> dict:
    oban = Oban(pool=await opened(order, connections=2))
    jobs = order["jobs"]
    for start in range(0, jobs, 1_000):
        await oban.enqueue_many(*(One.new({"steps": 1}) for _ in range(min(1_000, jobs - start))))
    return {"jobs": jobs}


async def work(order: dict) -> dict:
    pool = await opened(order, connections=8)
    wait_for_go()
    queue = {"limit": order["in_flight"], "debounce_interval": 0.001}
    oban = Oban(pool=pool, queues={"default": queue})
    await oban.start()
    await wait_for_end()
    return {}


if __name__ == "__main__":
    answer_async({"one-async": one, "bulk": bulk, "fill": fill, "work": work}, run=uvloop.run)
