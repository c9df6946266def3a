"""Procrastinate on PostgreSQL, run by the Python of its own environment; prints JSON lines.

It fetches and finishes one job a statement and keeps a row for each; it stores no results.
"""

from __future__ import annotations

import asyncio
import logging

from procrastinate import App, PsycopgConnector

from bench.on_postgres.answering import answer_async, in_lists, one_by_one, until_the_end, wait_for_go

logging.disable(logging.WARNING)


async def opened(order: dict, *, connections: int) -> App:
    app = App(connector=PsycopgConnector(conninfo=order["dsn"], min_size=connections, max_size=connections))

    @app.task(name="job", queue="default")
    async def job(steps: int) -> int:
        return steps

    await app.open_async()
    if not await app.check_connection_async():
        await app.schema_manager.apply_schema_async()
    return app


async def one(order: dict) -> dict:
    app = await opened(order, connections=order["callers"])
    return await one_by_one(order, lambda _caller: app.tasks["job"].defer_async(steps=1))


async def bulk(order: dict) -> dict:
    app = await opened(order, connections=2)
    task = app.tasks["job"]
    return await in_lists(order, lambda size: task.batch_defer_async(*({"steps": 1} for _ in range(size))))


async def fill(order: dict) -> dict:
    app = await opened(order, connections=2)
    await app.tasks["job"].batch_defer_async(*({"steps": 1} for _ in range(order["jobs"])))
    return {"jobs": order["jobs"]}


async def work(order: dict) -> dict:
    app = await opened(order, connections=order["in_flight"])
    wait_for_go()
    working = asyncio.create_task(
        app.run_worker_async(concurrency=order["in_flight"], install_signal_handlers=False)
    )
    await until_the_end(working)
    return {}


if __name__ == "__main__":
    answer_async({"one-async": one, "bulk": bulk, "fill": fill, "work": work})
