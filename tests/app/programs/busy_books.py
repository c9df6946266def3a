"""Jobs of many kinds, as worker processes run them until they are killed.

python -m tests.app.programs.busy_books ADDRESS
"""

from __future__ import annotations

import asyncio
import sys

from tallystick import Happened, Key, NotDone, Retry, StepFailed, Tally, again, aio, gather, sleep, wait

app = Tally(keep_turns=2)
app.queue("few", concurrency=2, per_key=1)


def look(key: Key, n: int) -> Happened[int]:
    return Happened(n)


@app.effect(key="act:{n}", probe=look, timeout="1s", settle="10ms", retry=Retry(2, first="1ms"))
def act(key: Key, n: int) -> int:
    return n


@app.step
def work(n: int) -> int:
    return n


@app.tx
def book(db, n: int) -> int:
    return n


@app.workflow(attempts=50)
def plain(n: int) -> int:
    return work(n) + book(n)


@app.workflow(attempts=50)
def waits(n: int) -> int:
    got = wait("go", int, timeout="2s", default=0)
    sleep("20ms")
    return work(n) + got


@app.workflow(attempts=50)
def child(n: int) -> int:
    return work(n)


@app.workflow(attempts=50)
def parent(n: int) -> int:
    return sum(gather(*(child.child(i) for i in range(n))))


@app.workflow(attempts=50)
def loop(n: int) -> int:
    act(n)
    work(n)
    return again(n + 1) if n % 8 else n


@app.workflow(attempts=50)
def acts(n: int) -> int:
    return act(n) + work(n)


@app.effect(key="shy:{n}", probe=look, timeout="1s", settle="10ms", retry=Retry(3, first="50ms"))
def shy(key: Key, n: int) -> int:
    if n % 2:
        raise NotDone("later")
    return n


@app.workflow(attempts=50, queue="few")
def shares(n: int) -> int:
    """Two of them come to one key: the second waits for the first, or acts if that has given up."""
    try:
        return shy(n // 2)
    except StepFailed:
        return -1


@app.workflow(attempts=50, retry=Retry(3, first="100ms"))
def fails(n: int) -> int:
    work(n)
    raise ValueError("again")


@app.workflow(attempts=50)
async def several(n: int) -> int:
    first = asyncio.ensure_future(aio.wait("a", int, timeout="5s", default=0))
    await aio.wait("b", int, timeout="300ms", default=0)
    await aio.sleep("50ms")
    return await first + n


if __name__ == "__main__":
    app.bind(sys.argv[1])
    app.work(concurrency=8, lease="2s", queues=["default", "few"])
