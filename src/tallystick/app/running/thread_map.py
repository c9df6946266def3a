"""Threads that a workflow starts: they carry its context, so that steps called in them are durable."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def thread_map(fn: Callable[[A], R], items: Iterable[A], *, threads: int = 8) -> list[R]:
    """Call the function for every item in threads that carry this context; return the results in order.

    Steps called in parallel must be told apart: use `step.named(...)`.
    """
    listed = list(items)
    contexts = [contextvars.copy_context() for _ in listed]
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="tally-map") as pool:
        return list(pool.map(lambda pair: pair[0].run(fn, pair[1]), zip(contexts, listed, strict=True)))
