"""Programs that users write: every line must be accepted, with exactly these types."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import psycopg
from sqlalchemy.orm import Session

from tallystick import (
    AsyncTx,
    Child,
    Fatal,
    Job,
    Key,
    MapSummary,
    Retry,
    StepFailed,
    Tally,
    Tx,
    again,
    aio,
    gather,
    now,
    patched,
    random,
    sleep,
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
def count_reserved(db: Tx) -> int:
    row = db.execute("select count(*) from reserved").fetchone()
    return int(row[0]) if row else 0


def lookup_charge(key: str) -> str | None:
    return key


@app.effect
def email(key: Key, address: str, *, subject: str) -> str:
    return f"{key} {address} {subject}"


@app.effect(key="charge:{order}", probe=lookup_charge)
def charge(key: Key, order: int) -> str:
    return f"{key} {order}"


@app.effect(key="notify:{order}")
async def notify(key: Key, order: int) -> str:
    return f"{key} {order}"


@app.remote("warehouse", ack="30s", lease="15m")
def pack(order: int) -> str:
    raise NotImplementedError  # the warehouse does it; mypy refuses the shorter `...`, see fails.py


# --- in a unit test a handler is a plain function ---

assert_type(quote(1), int)
assert_type(quote(order=1, currency="CHF"), int)
assert_type(quote.fn(1), int)
assert_type(price(Order(1, 2)), int)
pending = assert_type(fetch("u"), Coroutine[Any, Any, bytes])
assert_type(charge(42), str)
assert_type(charge(order=42), str)
assert_type(charge.fn(Key("k"), 42), str)
assert_type(email("a@b", subject="hello"), str)
assert_type(reserve(42), None)
assert_type(by_connection(42), int)
assert_type(by_session(42, gift=True), str)
taken = assert_type(by_task(42), Coroutine[Any, Any, int])
assert_type(count_reserved(), int)
assert_type(pack(42), str)


def with_a_transaction(db: Tx) -> None:
    reserve.fn(db, 42)
    assert_type(count_reserved.fn(db), int)


# --- options keep the type ---

assert_type(quote.opts(timeout="5s").named("quote for the letter")(1), int)
assert_type(charge.named("second charge")(42), str)
plain: Callable[[int], int] = quote


# --- workflows ---


@app.workflow
def checkout(order: int, *, gift: bool = False) -> str:
    reserve(order)
    assert_type(charge(order), str)
    approved = wait("approve", bool, timeout="2d")
    assert_type(approved, bool | None)
    if not approved:
        return "declined"
    sleep("1h")
    sleep(timedelta(hours=1))
    return pack(order)


@app.workflow(queue="slow", version="2", idempotent=True)
async def checkout_async(order: int) -> str:
    price_now = await quote.aio(order)
    assert_type(price_now, int)
    page = await fetch("u")
    assert_type(page, bytes)
    await reserve.aio(order)
    assert_type(await notify(order), str)
    assert_type(await aio.wait("address", Order), Order)
    assert_type(await aio.wait("approve", bool, timeout=3600), bool | None)
    await aio.sleep("1h")
    both = await aio.gather(quote.aio(1), fetch("u"))
    assert_type(both, tuple[int, bytes])
    alone = await parent.child([1])
    assert_type(alone, int)
    assert_type(await aio.gather(parent.child([1]), checkout.child(2)), tuple[int, str])
    many = await aio.gather(*[quote.aio(n) for n in range(10)], fail_fast=True)
    assert_type(many, tuple[int, ...])
    return await charge.aio(order)


@app.workflow
def parent(orders: list[int]) -> int:
    children = [checkout.child(order, gift=True) for order in orders]
    assert_type(children[0], Child[str])
    assert_type(children[0].result(), str)
    assert_type(gather(*children, enough=3), tuple[str, ...])
    assert_type(gather(checkout.child(1), checkout_async.child(2)), tuple[str, str])
    assert_type(gather(checkout.child(1), lambda: quote(2)), tuple[str, int])
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
assert_type(job.why(), str)
assert_type(job.history()[0].at, datetime)
job.cancel()
assert_type(job.fork(at="charge"), Job[str])
assert_type(job.fork(at="charge#2", version="2"), Job[str])
assert_type(job.retry(), Job[str])
job.pause()
job.pause("the warehouse is moving")
job.resume()
assert_type(app.dead(workflow="checkout"), list[Job[Any]])
assert_type(checkout_async.submit(42), Job[str])
assert_type(checkout_async.opts(idempotency_key="o-42", within=object()).submit(42), Job[str])
assert_type(checkout_async.opts(delay="1h", priority=5).submit(42).result(), str)
anything: Job[object] = job


async def in_a_web_handler() -> str:
    assert_type(await job, str)
    one: str = (await job.send_aio("approve", True)).name
    many: str = (await app.send_many_aio([job], one, True))[0].name
    job.send(many)
    return await checkout_async.submit(42)


# --- maps ---


@app.step
def report(summary: MapSummary) -> None:
    assert_type(summary.failed, int)


assert_type(app.map(price, [Order(1, 2)], then=report).submit(), Job[MapSummary])
assert_type(app.map(quote, range(1_000_000), chunk=1000).submit().result().total, int)


@app.on_worker_start
def open_pool() -> None: ...


@app.on_worker_stop
async def close_pool() -> None: ...


app.bind("sqlite:///other.db")
app.work()
