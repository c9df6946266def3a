"""Mistakes that the package itself lets checkers find: every marked line must be reported, and no other.

`# E: <mypy code> | <pyright rule>`; `-` where one of the two is known to stay silent.
"""

from __future__ import annotations

from tallystick import Child, Job, Retry, Tally, Tx, aio, gather, sleep, wait

app = Tally("sqlite:///shop.db")


@app.step
def quote(order: int) -> int:
    return order


@app.step
async def fetch(url: str) -> bytes:
    return url.encode()


@app.tx
def reserve(db: Tx, order: int) -> None: ...


@app.workflow
def checkout(order: int) -> str:
    return str(quote(order))


@app.workflow
async def checkout_async(order: int) -> str:
    return str(await quote.aio(order))


job = checkout.submit(42)

# --- arguments are checked as if nothing were decorated ---

quote("42")  # E: arg-type | reportArgumentType
quote()  # E: call-arg | reportCallIssue
quote(42, 43)  # E: call-arg | reportCallIssue
quote.named("again")("42")  # E: arg-type | reportArgumentType
quote.fn("42")  # E: arg-type | reportArgumentType
quote.aio("42")  # E: arg-type, unused-coroutine | reportArgumentType, reportUnusedCoroutine
checkout.submit("42")  # E: arg-type | reportArgumentType
checkout.submit()  # E: call-arg | reportCallIssue
checkout.submit(nothing=42)  # E: call-arg | reportCallIssue
checkout_async.submit("42")  # E: arg-type | reportArgumentType
checkout.child("42")  # E: arg-type | reportArgumentType
checkout_async.child()  # E: call-arg | reportCallIssue

# --- what is injected is not passed, and must come first ---


def misuse_injected(db: Tx) -> None:
    reserve(db, 42)  # E: arg-type, call-arg | reportCallIssue
    reserve.fn(42)  # E: arg-type, call-arg | reportCallIssue


def without_tx(order: int) -> None: ...
def tx_second(order: int, db: Tx) -> None: ...
def tx_by_keyword(*, db: Tx) -> None: ...
async def async_tx(db: Tx) -> None: ...


app.tx(without_tx)  # E: arg-type | reportArgumentType, reportCallIssue
app.tx(tx_second)  # E: arg-type | reportArgumentType, reportCallIssue
app.tx(tx_by_keyword)  # E: arg-type | reportArgumentType, reportCallIssue
app.tx(name="x")(tx_second)  # E: arg-type | reportArgumentType, reportCallIssue
app.tx(async_tx)()  # E: operator | reportCallIssue

# --- results have their types ---

number: int = checkout.submit(42).result()  # E: assignment | reportAssignmentType
numbers: Job[int] = job  # E: assignment | reportAssignmentType
approved: bool = wait("approve", bool, timeout="2d")  # E: assignment | reportAssignmentType
first, second = gather(checkout.child(1), checkout.child(2))
total = first + 1  # E: operator | reportOperatorIssue
child: Child[int] = checkout.child(1)  # E: assignment | reportAssignmentType
price: int = quote.aio(42)  # E: assignment | reportAssignmentType
body: bytes = fetch("u")  # E: assignment | reportAssignmentType

# --- the colour of a function is checked ---


async def colours() -> None:
    await quote(42)  # E: misc | reportGeneralTypeIssues
    fetch("u")  # E: unused-coroutine | reportUnusedCoroutine
    quote.aio(42)  # E: unused-coroutine | reportUnusedCoroutine
    aio.sleep("1h")  # E: unused-coroutine | reportUnusedCoroutine
    await sleep("1h")  # E: func-returns-value, misc | reportGeneralTypeIssues
    fetch.aio("u")  # E: attr-defined | reportAttributeAccessIssue
    declined: bool = await aio.wait("approve", bool, timeout="2d")  # E: assignment | reportAssignmentType


# --- names and options are checked ---

wait("approve")  # E: call-overload | reportCallIssue
wait("approve", "bool")  # E: call-overload | reportArgumentType
wait("approve", bool, "2d")  # E: call-overload | reportCallIssue
sleep()  # E: call-arg | reportCallIssue
gather(job)  # E: call-overload | reportArgumentType, reportCallIssue
gather(checkout.child(1), enough="1")  # E: call-overload | reportArgumentType
job.send(1, True)  # E: arg-type | reportArgumentType
app.send_many(job, "approve")  # E: arg-type | reportArgumentType
app.jobs("customer:42")  # E: call-arg | reportCallIssue
child_id: int = checkout.opts(detached=True).submit(1)  # E: assignment | reportAssignmentType
job.fork("charge")  # E: call-arg | reportCallIssue
job.fork()  # E: call-arg | reportCallIssue
wrong_fork: Job[int] = job.fork(at="charge")  # E: assignment | reportAssignmentType
job.pause(1)  # E: arg-type | reportArgumentType
job.finish()  # E: attr-defined | reportAttributeAccessIssue
quote.submit(42)  # E: attr-defined | reportAttributeAccessIssue
quote.opts(idempotency_key="o-42")  # E: call-arg | reportCallIssue
checkout.opts(idempotencykey="o-42")  # E: call-arg | reportCallIssue
checkout.submit(42, idempotency_key="o-42")  # E: call-arg | reportCallIssue
app.step(retries=5)  # E: call-overload | reportCallIssue
app.step(retry=5)  # E: call-overload | reportArgumentType
app.workflow(idempotent="yes")  # E: call-overload | reportArgumentType
Retry("5")  # E: arg-type | reportArgumentType
