"""A parent with two groups of children, as worker processes run it until they are killed.

python -m tests.crash.family ADDRESS
"""

from __future__ import annotations

import asyncio
import sys

from tallystick import Tally, aio

app = Tally()


@app.workflow(attempts=50)
async def child(number: int) -> int:
    return number


@app.workflow(attempts=50)
async def parent(children: int) -> list[int]:
    """Open two groups at once and return what each came to."""
    both = await asyncio.gather(
        aio.gather(*(child.child(number) for number in range(children))),
        aio.gather(*(child.child(-number) for number in range(children))),
    )
    return [sum(results) for results in both]


if __name__ == "__main__":
    app.bind(sys.argv[1])
    app.work(concurrency=32, lease="2s")
