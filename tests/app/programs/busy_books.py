"""Jobs of many kinds, as worker processes run them until they are killed.

python -m tests.app.programs.busy_books ADDRESS
"""

from __future__ import annotations

import sys

from tallystick import Happened, Key, Retry, Tally, again, gather, sleep, wait

app = Tally(keep_turns=2)


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


if __name__ == "__main__":
    app.bind(sys.argv[1])
    app.work(concurrency=8, lease="2s")
