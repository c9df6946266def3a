"""What every side of the PostgreSQL benchmark does the same way; the standard library only, for any Python.

A side is a program that gets an order as JSON, measures itself, and prints one line of JSON at its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine

Order = dict
Answer = dict


def answer(cases: dict[str, Callable[[Order], Answer]]) -> None:
    """Do what was ordered, say what came of it, and leave at once: background threads of peers sleep long."""
    order = json.loads(sys.argv[1])
    said = cases[order["case"]](order)
    print(json.dumps(said), flush=True)
    sys.stdout.flush()
    os._exit(0)


def answer_async(
    cases: dict[str, Callable[[Order], Coroutine[object, object, Answer]]],
    run: Callable[[Coroutine[object, object, Answer]], Answer] = asyncio.run,
) -> None:
    """Do the same on a loop."""
    answer({name: lambda order, case=case: run(case(order)) for name, case in cases.items()})


def wait_for_go() -> None:
    """Say that everything is open and warm, and wait for the line that starts the clock."""
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()


async def wait_for_end() -> None:
    """Return when the input ends, which is how a worker is told to stop."""
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def until_the_end(*working: asyncio.Task) -> None:
    """Return when the input ends; a worker that ends before raises what it ended with."""
    ended = asyncio.create_task(wait_for_end())
    done, _ = await asyncio.wait((*working, ended), return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def one_by_one(order: Order, enqueue: Callable[[int], Awaitable[object]]) -> Answer:
    """Let callers, who are numbered, enqueue one job at a time; the first of each is not counted."""
    callers, each = order["callers"], order["jobs"] // order["callers"]

    async def caller(number: int, times: int) -> None:
        for _ in range(times):
            await enqueue(number)

    await asyncio.gather(*(caller(number, 1) for number in range(callers)))
    begun = time.perf_counter()
    await asyncio.gather(*(caller(number, each) for number in range(callers)))
    return {"seconds": time.perf_counter() - begun, "jobs": callers * each}


async def in_lists(order: Order, enqueue: Callable[[int], Awaitable[object]]) -> Answer:
    """Enqueue lists of so many jobs one after the other; the first list is not counted."""
    size, lists = order["size"], -(-order["jobs"] // order["size"])
    await enqueue(size)
    begun = time.perf_counter()
    for _ in range(lists):
        await enqueue(size)
    return {"seconds": time.perf_counter() - begun, "jobs": lists * size}
