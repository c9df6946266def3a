"""What a tx on PostgreSQL may be: with a psycopg connection, with an SQLAlchemy session, and `async def`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tallystick import AsyncTx, Retry, Tally, Tx
from tallystick.errors import BadInput, JobFailed, WrongColour
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

SECONDS = 30


class Base(DeclarativeBase):
    """The tables of these tests."""


class Payment(Base):
    """A row of the user's own."""

    __tablename__ = "payments"
    order: Mapped[int] = mapped_column(primary_key=True)
    cents: Mapped[int]


class OwnSession(Session):
    """A session class of the user's own."""


@pytest.fixture
def app(server: Server) -> Iterator[Tally]:
    schema = fresh_schema()
    tally = Tally(server.url(schema=schema, options=f"-c%20search_path%3D{schema}"))
    with tally.transaction() as db:
        db.execute('CREATE TABLE payments ("order" INTEGER PRIMARY KEY, cents INTEGER NOT NULL)')
    yield tally
    tally.close()


def payments(app: Tally) -> list[tuple[int, int]]:
    with app.connect() as db:
        return db.execute('SELECT "order", cents FROM payments ORDER BY 1')


def test_a_psycopg_connection(app: Tally) -> None:
    @app.tx
    def pay(db: psycopg.Connection, order: int, cents: int) -> int:
        with db.transaction():  # a savepoint
            db.execute("INSERT INTO payments VALUES (%s, %s)", (order, cents))
        with db.cursor() as cursor:
            return cursor.execute("SELECT count(*) FROM payments").fetchone()[0]

    @app.workflow
    def flow(order: int) -> int:
        return pay(order, 995)

    with app.worker():
        assert [flow.submit(n).result(SECONDS) for n in (1, 2)] == [1, 2]
    assert payments(app) == [(1, 995), (2, 995)]


@pytest.mark.parametrize("kind", [Session, OwnSession])
def test_an_sqlalchemy_session(app: Tally, kind: type[Session]) -> None:
    seen = []

    def pay(db: Session, order: int, cents: int) -> int:
        seen.append(type(db))
        with db.begin_nested():
            db.add(Payment(order=order, cents=cents))
        db.add(Payment(order=order + 100, cents=0))  # not flushed by hand
        return db.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(Payment))

    pay.__annotations__["db"] = kind
    paid = app.tx(pay)

    @app.workflow
    def flow(order: int) -> int:
        return paid(order, 995)

    with app.worker():
        assert [flow.submit(n).result(SECONDS) for n in (1, 2)] == [2, 4]
    assert seen == [kind, kind]
    assert payments(app) == [(1, 995), (2, 995), (101, 0), (102, 0)]


@pytest.mark.parametrize("how", ["raises", "commit", "rollback", "text", "hidden"])
@pytest.mark.parametrize("kind", [psycopg.Connection, Session])
def test_what_ends_the_transaction_is_refused_and_undone(app: Tally, kind: type, how: str) -> None:
    def pay(db: Any) -> None:
        text = sqlalchemy.text if isinstance(db, Session) else str
        db.execute(text("INSERT INTO payments VALUES (1, 1)"))
        match how:
            case "raises":
                raise LookupError("mine")
            case "commit":
                db.commit()
            case "rollback":
                db.rollback()
            case "text":
                db.execute(text("/* now */ COMMIT"))
            case "hidden":
                db.execute(text("SELECT 1; ROLLBACK"))

    pay.__annotations__["db"] = kind
    paid = app.tx(pay)

    @app.workflow
    def flow() -> None:
        paid()

    with app.worker(), pytest.raises(JobFailed) as failed:
        flow.submit().result(SECONDS)
    wanted = {"raises": "mine", "text": "COMMIT is not for", "hidden": "ended its transaction by itself"}
    assert wanted.get(how, f"a tx has no {how}") in str(failed.value)
    assert payments(app) == []


def test_an_async_tx_runs_on_the_loop_of_its_workflow(app: Tally) -> None:
    loops = []

    @app.workflow
    def after(order: int) -> int:
        return order

    @app.tx
    async def pay(db: AsyncTx, order: int, cents: int) -> int:
        loops.append(asyncio.get_running_loop())
        await db.executemany(
            "INSERT INTO payments VALUES (:order, :cents)",
            [{"order": order, "cents": cents}, {"order": order + 1, "cents": cents}],
        )
        await after.opts(within=db).submit_aio(order)
        ((count,),) = await db.execute("SELECT count(*) FROM payments")
        return int(count)

    @app.workflow
    async def flow(order: int) -> int:
        loops.append(asyncio.get_running_loop())
        return await pay(order, 5)

    with app.worker():
        assert flow.submit(1).result(SECONDS) == 2
    assert loops[0] is loops[1]
    assert payments(app) == [(1, 5), (2, 5)]
    assert len(app.jobs(workflow="after")) == 1


def test_an_async_tx_that_raises_is_undone_and_tried_again(app: Tally) -> None:
    tries = []

    @app.tx(retry=Retry(3, first="1ms"))
    async def pay(db: AsyncTx) -> int:
        await db.execute("INSERT INTO payments VALUES (1, 1)")
        tries.append(1)
        if len(tries) < 3:
            raise OSError("again")
        return len(tries)

    @app.workflow
    async def flow() -> int:
        return await pay()

    with app.worker():
        assert flow.submit().result(SECONDS) == 3
    assert payments(app) == [(1, 1)]


def test_an_async_tx_that_waits_for_too_long_is_undone(app: Tally) -> None:
    @app.tx
    async def pay(db: AsyncTx) -> None:
        await db.execute("INSERT INTO payments VALUES (1, 1)")
        await asyncio.get_running_loop().create_future()

    @app.workflow
    async def flow() -> None:
        await pay()

    with app.worker(lease="900ms"), pytest.raises(JobFailed, match="more than 300 ms"):
        flow.submit().result(SECONDS)
    assert payments(app) == []


def test_an_async_tx_that_exits_takes_nothing_with_it(app: Tally) -> None:
    @app.tx
    async def leave(db: AsyncTx) -> None:
        raise SystemExit(3)

    @app.workflow
    async def flow() -> None:
        await leave()

    @app.workflow
    async def fine() -> int:
        return 1

    with app.worker():
        with pytest.raises(JobFailed):
            flow.submit().result(SECONDS)
        assert fine.submit().result(SECONDS) == 1


def test_a_sync_workflow_cannot_wait_for_an_async_tx(app: Tally) -> None:
    @app.tx
    async def pay(db: AsyncTx) -> None: ...

    @app.workflow
    def flow() -> str:
        try:
            pay()  # type: ignore[unused-coroutine]  # that is what is tested
        except WrongColour as error:
            return str(error)
        return "no"

    with app.worker():
        assert "pay is async" in flow.submit().result(SECONDS)


@pytest.mark.parametrize("kind", [Tx, Session, psycopg.Connection])
def test_an_async_tx_takes_no_transaction_that_blocks_its_loop(app: Tally, kind: type) -> None:
    async def pay(db: object) -> None: ...

    pay.__annotations__["db"] = kind
    with pytest.raises(BadInput, match=f"a {kind.__name__} would block its loop: write db: AsyncTx"):
        app.tx(pay)


def declare(app: Tally, what: str) -> None:
    if what == "async":

        @app.tx
        async def pay(db: AsyncTx) -> None: ...
    elif what == "session":

        @app.tx
        def pay(db: Session) -> None: ...
    else:

        @app.tx
        def pay(db: psycopg.Connection) -> None: ...


@pytest.mark.parametrize(
    ("what", "why"), [("async", "one writer"), ("session", "second library"), ("psycopg", "second library")]
)
def test_on_sqlite_they_are_refused_when_the_store_is_opened_or_bound(
    server: Server, tmp_path, what: str, why: str
) -> None:
    file = f"sqlite:///{tmp_path}/shop.db"
    app = Tally(file)
    declare(app, what)  # accepted: it may be bound to a server
    with pytest.raises(BadInput, match=f"pay cannot run on SQLite: .*{why}"):
        app.runtime()
    app.bind(server.url(schema=fresh_schema()))
    app.runtime()
    app.close()
    with pytest.raises(BadInput, match=why):
        app.bind(file)
    opened = Tally(file)
    opened.runtime()
    with pytest.raises(BadInput, match=why):
        declare(opened, what)
    opened.close()
