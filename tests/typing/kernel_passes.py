"""Programs on what the package has today: every line must be accepted, with exactly these types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import psycopg
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from tallystick import (
    AsyncTx,
    Cancelled,
    Child,
    ChildrenFailed,
    DidNotHappen,
    Fatal,
    Happened,
    Job,
    Key,
    Retry,
    Started,
    StepFailed,
    Tally,
    Tx,
    Unknown,
    Why,
    again,
    aio,
    current,
    gather,
    now,
    patched,
    progress,
    random,
    set_value,
    sleep,
    start,
    thread_map,
    uuid,
    wait,
)

app = Tally("sqlite:///shop.db")


@dataclass
class Order:
    number: int
    total: int


class CardDeclined(Exception): ...


# --- decorators, bare and called, sync and async ---


@app.step
def quote(order: int, currency: str = "EUR") -> int:
    return order if currency else 0


@app.step(retry=Retry(5, first="1s", longest=60.0), timeout=timedelta(minutes=1), raises=[CardDeclined])
def price(order: Order) -> int:
    if order.total < 0:
        raise Fatal("a negative total")
    return order.total


@app.step
async def fetch(url: str) -> bytes:
    return url.encode()


@app.step(retry=Retry(3))
async def fetch_often(url: str) -> bytes:
    return url.encode()


@app.tx
def reserve(db: Tx, order: int) -> None:
    db.execute("insert into reserved values (?)", [order])


@app.tx
def by_connection(db: psycopg.Connection[tuple[int]], order: int) -> int:
    row = db.execute("select count(*) from reserved where n > %s", (order,)).fetchone()
    return row[0] if row else 0


@app.tx(name="by-session")
def by_session(db: Session, order: int, *, gift: bool = False) -> str:
    return f"{db.get(Order, order)} {gift}"


@app.tx
async def by_task(db: AsyncTx, order: int) -> int:
    await db.execute("insert into reserved values (:order)", {"order": order})
    return order


@app.tx(name="count")
def count_reserved(db: Tx, *, since: int = 0) -> int:
    return int(db.execute("select count(*) from reserved where n > ?", [since])[0][0])


def look(key: Key, order: int) -> Happened[str] | DidNotHappen | Unknown:
    return Happened(key) if order else DidNotHappen()


@app.effect(key="charge:{order}", probe=look, timeout="5s", settle="1m", safe_errors=[OSError])
def charge(key: Key, order: int, *, cents: int = 1) -> str:
    return f"{key} {order} {cents}"


def mail_key(order: int) -> str:
    return f"mail:{order}"


@app.effect(key=mail_key)
async def mail(key: Key, order: int) -> int:
    return len(key) + order


# --- in a unit test a handler is a plain function ---

assert_type(quote(1), int)
assert_type(quote(order=1, currency="CHF"), int)
assert_type(quote.fn(1), int)
assert_type(price(Order(1, 2)), int)
pending = assert_type(fetch("u"), Coroutine[Any, Any, bytes])
original = assert_type(fetch.fn("u"), Coroutine[Any, Any, bytes])
assert_type(reserve(42), None)
assert_type(by_connection(42), int)
assert_type(by_session(42, gift=True), str)
taken = assert_type(by_task(42), Coroutine[Any, Any, int])
assert_type(count_reserved(since=1), int)
assert_type(charge(42, cents=2), str)
assert_type(charge.fn(Key("k"), 42), str)
assert_type(charge.opts(timeout="1s")(42), str)
charging = assert_type(charge.aio(42), Coroutine[Any, Any, str])
mailing = assert_type(mail(42), Coroutine[Any, Any, int])


def with_a_transaction(db: Tx) -> None:
    reserve.fn(db, 42)
    assert_type(count_reserved.fn(db, since=1), int)


# --- options keep the type ---

assert_type(quote.opts(timeout="5s").named("for-the-letter")(1), int)
assert_type(count_reserved.named("second")(since=2), int)
plain: Callable[[int], int] = quote


# --- workflows ---


@app.workflow
def checkout(order: int, *, gift: bool = False) -> str:
    reserve(order)
    approved = wait("approve", bool, timeout="2d")
    assert_type(approved, bool | None)
    assert_type(wait("address", Order), Order)
    if not approved:
        return "declined"
    sleep("1h")
    sleep(timedelta(hours=1))
    try:
        return f"{quote(order)} {gift}"
    except Cancelled:
        reserve(-order)
        raise


@app.workflow(queue="slow", version="2", idempotent=True, deadline="1d")
async def checkout_async(order: int) -> bytes:
    assert_type(await quote.aio(order), int)
    assert_type(await count_reserved.aio(since=1), int)
    await reserve.aio(order)
    assert_type(await aio.wait("address", Order), Order)
    assert_type(await aio.wait("approve", bool, timeout=3600), bool | None)
    await aio.sleep("1h")
    return await fetch_often("u")


# --- children ---


@app.workflow
def parent(orders: list[int]) -> int:
    children = [checkout.child(order, gift=True) for order in orders]
    assert_type(children[0], Child[str])
    assert_type(children[0].result(), str)
    assert_type(gather(*children), tuple[str, ...])
    assert_type(gather(*children, enough=3), tuple[str, ...])
    assert_type(gather(*children, fail_fast=True), tuple[str, ...])
    assert_type(gather(checkout.child(1)), tuple[str])
    assert_type(gather(checkout.child(1), checkout_async.child(2)), tuple[str, bytes])
    assert_type(gather(checkout.child(1), checkout_async.child(2), parent.child([])), tuple[str, bytes, int])
    assert_type(gather(checkout.child(1), return_exceptions=True), tuple[str | Exception])
    assert_type(
        gather(checkout.child(1), checkout_async.child(2), return_exceptions=True),
        tuple[str | Exception, bytes | Exception],
    )
    assert_type(gather(*children, return_exceptions=True), tuple[str | Exception, ...])
    assert_type(gather(*children, enough=2, return_exceptions=True), tuple[str | Exception, ...])
    started = start(checkout.child(1))
    assert_type(started, Started[str])
    assert_type(started.result(), str)
    assert_type(started.id, str)
    assert_type(checkout(1), str)
    assert_type(wait("numbers", list[int]), list[int])
    assert_type(now(), datetime)
    assert_type(uuid(), UUID)
    assert_type(patched("tax"), bool)
    assert_type(checkout.opts(detached=True).submit(1), Job[str])
    assert_type(random(), float)
    assert_type(thread_map(quote, orders), list[int])
    try:
        price(Order(1, 2))
    except StepFailed as error:
        assert_type(error.tries, int)
    except ChildrenFailed as error:
        assert_type(error.errors, tuple[Exception, ...])
        assert_type(error.results, dict[int, object])
    if orders:
        return again(orders[1:])
    return len(orders)


@app.workflow
async def parent_async(orders: list[int]) -> int:
    assert_type(await checkout.child(1), str)
    assert_type(await checkout_async(1), bytes)
    assert_type(await aio.gather(checkout.child(1), checkout_async.child(2)), tuple[str, bytes])
    assert_type(
        await aio.gather(checkout.child(1), checkout_async.child(2), return_exceptions=True),
        tuple[str | Exception, bytes | Exception],
    )
    handle = await aio.start(checkout_async.child(1))
    assert_type(handle, Started[bytes])
    assert_type(await handle, bytes)
    assert_type(await aio.gather(*[parent.child([n]) for n in orders], enough=2), tuple[int, ...])
    if orders:
        return again(orders[1:])
    return len(orders)


# --- jobs ---

job = checkout.submit(42, gift=True)
assert_type(job, Job[str])
assert_type(job.result(), str)
assert_type(job.result(timeout="30s"), str)
assert_type(job.id, str)
assert_type(job.created, bool)
job.send("approve", True)
job.send("approve", True, id="click-1")
assert_type(job.tags, tuple[str, ...])
assert_type(app.jobs(tag="customer:42", limit=10), list[Job[Any]])
told: str = app.send_many([job, job], "approve", True, id="x")[0].name
assert_type(checkout.opts(tags=["a"], detached=True).submit(1), Job[str])
job.cancel()
job.cancel(grace=timedelta(minutes=1))
job.pause()
job.pause("the warehouse is moving")
job.resume()
assert_type(job.fork(at="charge"), Job[str])
assert_type(job.fork(at="charge#2", version="2"), Job[str])
assert_type(job.retry(), Job[str])
assert_type(app.dead(workflow="checkout"), list[Job[Any]])
assert_type(job.history()[0].at, datetime)
assert_type(job.why(), Why)
assert_type(checkout_async.submit(42), Job[bytes])
assert_type(checkout_async.opts(idempotency_key="o-42", delay="1h", priority=5).submit(42).result(), bytes)
assert_type(checkout.submit_many([(1,), (2,)]), list[Job[str]])
anything: Job[object] = job
any_child: Child[object] = checkout.child(1)


async def in_a_web_handler() -> bytes:
    assert_type(await job, str)
    one: str = (await job.send_aio("approve", True)).name
    many: str = (await app.send_many_aio([job], one, True))[0].name
    job.send(many)
    assert_type(await checkout.submit_aio(1, gift=True), Job[str])
    assert_type(await checkout.submit_many_aio([(1,)]), list[Job[str]])
    assert_type(await job.fork_aio(at="charge"), Job[str])
    assert_type(await job.retry_aio(), Job[str])
    await job.pause_aio()
    await job.resume_aio()
    return await checkout_async.submit(42)


def in_a_transaction() -> Job[str]:
    with app.transaction() as db:
        return checkout.opts(within=db).submit(42)


@app.on_worker_start
def open_pool() -> None: ...


@app.on_worker_stop
async def close_pool() -> None: ...


app.bind("sqlite:///other.db")
app.work()


@dataclass
class Parcel:
    """What a remote worker sends back."""

    boxes: int


@app.remote("warehouse", ack="30s", lease=timedelta(minutes=15), retry=Retry(5), raises=[ValueError])
def pick(order: int, sku: str = "") -> Parcel:
    raise NotImplementedError


@app.remote("warehouse")
async def pick_later(order: int) -> list[int]:
    raise NotImplementedError


@app.workflow
def with_remote_steps(order: int) -> int:
    assert_type(pick(order), Parcel)
    assert_type(pick.opts(ack="1s", lease="1m").named("again")(order, sku="a"), Parcel)
    assert_type(gather(pick.later(1), pick.later(2)), tuple[Parcel, Parcel])
    return pick(order, "b").boxes


@app.workflow
async def with_remote_tasks(order: int) -> int:
    assert_type(await pick.aio(order), Parcel)
    assert_type(await pick_later(order), list[int])
    return 1


# --- who a job is, what it shows, and who hears of its end ---


@app.workflow(raises=[CardDeclined])
def telling(order: int) -> str:
    me = current()
    assert_type(me.job_id, str)
    assert_type(me.key, str | None)
    assert_type(me.tags, tuple[str, ...])
    assert_type(me.deadline, datetime | None)
    assert_type(me.parent_id, str | None)
    assert_type(me.cancelled, bool)
    me.raise_if_cancelled()
    set_value("order", {"number": order})
    progress(1, 2)
    return me.root_id


@app.step
async def asking() -> str:
    assert_type(current().try_number, int)
    assert_type(current().name, str)
    assert_type(current().occurrence, int)
    return current().idempotency_key


assert_type(job.value("order"), Any)
assert_type(job.values(), dict[str, Any])
assert_type(job.watch(), Iterator[tuple[str, Any]])
assert_type(job.watch_aio(), AsyncIterator[tuple[str, Any]])
assert_type(job.children(), list[Job[Any]])
assert_type(checkout.submit_many([{"order": 1}], kwargs=True), list[Job[str]])


@app.on_failed
def mourn(ended: Job[Any]) -> None:
    assert_type(ended.id, str)


@app.on_succeeded
async def cheer(ended: Job[Any]) -> None: ...


@app.on_held
def look_at_it(held: Job[Any]) -> None: ...


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents


def cents_of(money: Money) -> int:
    return money.cents


app.codec(Money, cents_of, Money)


async def on_my_loop(session: AsyncSession, connection: psycopg.AsyncConnection[Any]) -> None:
    async with app.worker(concurrency=2):
        assert_type(await job.result_aio("30s"), str)
        assert_type(await job.children_aio(), list[Job[Any]])
    await app.work_aio()
    assert_type(await checkout.opts(within=session).submit_aio(1), Job[str])
    assert_type(await checkout.opts(within=connection).submit_aio(1), Job[str])


with app.transaction(limit="2s") as short:
    short.execute("select :n", {"n": 1})
