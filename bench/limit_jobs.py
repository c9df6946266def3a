"""In which order the limit writes the rows of jobs, on either store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol


class Book(Protocol):
    """A store without an engine: it only writes the rows of the budget."""

    def group(self, size: int) -> list[str]: ...
    def submit(self, jobs: list[str]) -> None: ...
    def turn_over(self, done: list[str], begun: list[str]) -> None: ...
    def step(self, jobs: list[str], occurrence: int) -> None: ...


def whole_groups(jobs: int, size: int) -> int:
    """Return how many groups of that size hold so many jobs."""
    return -(-jobs // size)


def seconds_from_submission(book: Book, order: dict, jobs: int) -> float:
    """Return the seconds that the rows of so many jobs take, submissions included."""
    size = order["in_flight"]
    groups = (_submitted(book, size) for _ in range(whole_groups(jobs, size)))
    return seconds_of(book, groups, order["steps"])


def seconds_of(book: Book, groups: Iterable[list[str]], steps: int) -> float:
    """Return the seconds from the claim of the first group to the end of the last."""
    begun = time.perf_counter()
    done: list[str] = []
    for group in groups:
        book.turn_over(done, group)
        for occurrence in range(1, steps + 1):
            book.step(group, occurrence)
        done = group
    book.turn_over(done, [])
    return time.perf_counter() - begun


def _submitted(book: Book, size: int) -> list[str]:
    group = book.group(size)
    book.submit(group)
    return group
