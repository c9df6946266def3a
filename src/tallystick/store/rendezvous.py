"""A rendezvous: the committer lends its transaction to the thread whose turn it is, and takes it back.

Many users' transactions share one fsync this way, each under a savepoint of its own, and a body that takes
too long loses its turn instead of holding up all writers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Rendezvous(Generic[T, R]):
    """One loan of a `T` to a waiting thread, answered with an `R` or an exception."""

    def __init__(self) -> None:
        self._given = threading.Event()
        self._answered = threading.Event()
        self._loan: T | None = None
        self._answer: R | None = None
        self._error: BaseException | None = None

    def take(self, body: Callable[[T], R]) -> None:
        """Wait for the turn, run the body with the loan, and answer. The borrower's side.

        A body's exception is the answer too: it is raised on the other side, and not here.
        """
        self._given.wait()
        if self._loan is not None:
            try:
                self._answer = body(self._loan)
            except BaseException as error:  # noqa: BLE001 (the lender decides what it means)
                self._error = error
        self._answered.set()

    def lend(self, loan: T, seconds: float) -> R | None:
        """Give the loan and wait for the answer; None when time is up. The lender's side."""
        self._loan = loan
        self._given.set()
        if not self._answered.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        return self._answer

    def call_off(self) -> None:
        """Let the borrower go without a loan: the flush failed before its turn came."""
        self._given.set()
