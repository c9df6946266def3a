"""A submission inside a transaction that the user began on an event loop."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tallystick import Tally
from tallystick.errors import BadInput, IdempotencyConflict, Misuse, NotFound
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

SECONDS = 30


@pytest.fixture
def app(server: Server):
    tally = Tally(server.url(schema=fresh_schema()))
    yield tally
    tally.close()


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow(n: int) -> int:
        return n + 1

    return flow


def test_a_job_on_an_async_connection_is_there_if_the_user_commits(app, flow, server) -> None:
    async def main():
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            await connection.execute("CREATE TEMP TABLE orders (n INTEGER)")
            await connection.commit()
            await connection.execute("INSERT INTO orders VALUES (1)")
            kept = await flow.opts(within=connection).submit_aio(1)
            with pytest.raises(NotFound):
                kept.row()
            more = await flow.opts(within=connection).submit_many_aio([(2,), (3,)])
            await connection.commit()
            dropped = await flow.opts(within=connection).submit_aio(4)
            await connection.rollback()
            rows = await (await connection.execute("SELECT n FROM orders")).fetchall()
            path = await (await connection.execute("SHOW search_path")).fetchone()
            return rows, path, [kept, *more], dropped

    with app.worker():
        rows, path, kept, dropped = asyncio.run(main())
        assert (rows, path) == ([(1,)], ('"$user", public',))
        assert [job.result(SECONDS) for job in kept] == [2, 3, 4]
        with pytest.raises(NotFound):
            dropped.row()


def test_a_job_in_an_async_session_shares_its_fate(app, flow, server) -> None:
    async def main():
        engine = create_async_engine(server.dsn.replace("postgresql://", "postgresql+psycopg://"))
        async with AsyncSession(engine) as session:
            await session.execute(sqlalchemy.text("SELECT 1"))
            kept = await flow.opts(within=session, idempotency_key="k").submit_aio(3)
            await session.commit()
            dropped = await flow.opts(within=session).submit_aio(4)
            await session.rollback()
            with pytest.raises(IdempotencyConflict):
                await flow.opts(within=session, idempotency_key="k").submit_aio(9)
            again = await flow.opts(within=session, idempotency_key="k").submit_aio(3)
        async with engine.begin() as connection:
            also = await flow.opts(within=connection).submit_aio(5)
        await engine.dispose()
        return kept, again, also, dropped

    kept, again, also, dropped = asyncio.run(main())
    assert (again.id, again.created) == (kept.id, False)
    assert [kept.state(), also.state()] == ["QUEUED", "QUEUED"]
    with pytest.raises(NotFound):
        dropped.row()


def test_the_loop_goes_on_meanwhile(app, flow, server) -> None:
    async def main() -> int:
        ticks = 0
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            writing = asyncio.create_task(flow.opts(within=connection).submit_many_aio([(1,)] * 5))
            while not writing.done():
                ticks += 1
                await asyncio.sleep(0)
        return ticks

    assert asyncio.run(main()) > 10


def test_a_task_that_is_cancelled_leaves_its_connection_alone(app, flow, server) -> None:
    async def main() -> int:
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            keyed = flow.opts(within=connection, idempotency_key="k")
            async with await psycopg.AsyncConnection.connect(server.dsn) as other:
                await flow.opts(within=other, idempotency_key="k").submit_aio(1)
                waiting = asyncio.create_task(keyed.submit_aio(1))
                done, _ = await asyncio.wait([waiting], timeout=0.3)
                assert not done, "it waits for the key of the other transaction"
                waiting.cancel()
                await other.rollback()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            await connection.rollback()
            return connection.info.transaction_status

    assert asyncio.run(main()) == psycopg.pq.TransactionStatus.IDLE
    assert app.jobs() == []


def test_what_is_no_transaction_of_a_loop_is_refused(app, flow, server, tmp_path) -> None:
    async def refused(match: str, within: object) -> None:
        with pytest.raises(BadInput, match=match):
            await flow.opts(within=within).submit_aio(1)

    async def main() -> None:
        for nothing in (object(), 7):
            await refused("within=", nothing)
        with psycopg.connect(server.dsn) as sync:
            await refused("AsyncConnection", sync)
        async with await psycopg.AsyncConnection.connect(server.dsn, autocommit=True) as connection:
            await refused("begin a transaction", connection)
            with pytest.raises(BadInput, match="submit_aio"):
                flow.opts(within=connection).submit(1)
        with app.transaction() as db, pytest.raises(Misuse, match="belongs to its thread"):
            await flow.opts(within=db).submit_aio(1)

    asyncio.run(main())
    lite = Tally(f"sqlite:///{tmp_path}/shop.db")

    @lite.workflow(name="flow")
    def on_a_file(n: int) -> int:
        return n

    with pytest.raises(BadInput, match="on SQLite within="):
        asyncio.run(on_a_file.opts(within=object()).submit_aio(1))
    lite.close()
