"""Checks that a lent transaction is used by one thread only, and only until the loan ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tallystick.errors import BadInput, StoreMisused, TxTooLong


class Borrowing:
    """A loan: open until it is ended, and for the thread it was given to, or the first that uses it."""

    __slots__ = ("_borrower", "_ending", "_ms_max", "open")

    def __init__(self, borrower: int | None) -> None:
        """Begin the loan."""
        self._borrower = borrower
        self._ending = threading.Lock()
        self._ms_max: int | None = None
        self.open = True

    def end(self, *, after_ms: int | None = None) -> bool:
        """End the loan, because its time is up if `after_ms` is given; tell whether it was open."""
        with self._ending:
            was_open, self.open = self.open, False
            if was_open:
                self._ms_max = after_ms
            return was_open

    def check(self) -> None:
        """Refuse a call after the end, or by another thread: it would land in another's transaction."""
        self.check_time()
        if not self.open:
            raise StoreMisused(
                "this transaction has ended; use it only inside the function or block it was given to"
            )
        self._borrower = self._borrower or threading.get_ident()
        if threading.get_ident() != self._borrower:
            raise StoreMisused(
                "a transaction belongs to the thread it was given to; join other threads before it"
            )

    def check_time(self) -> None:
        """Refuse whatever comes after a loan was ended because its time was up."""
        if self._ms_max is not None:
            raise too_long(self._ms_max)


class Borrowers:
    """The threads that hold a transaction of a store for a block of their own."""

    def __init__(self) -> None:
        """Begin with none."""
        self.threads: set[int] = set()

    @contextmanager
    def borrowing(self) -> Iterator[int]:
        """Count the calling thread among them while a block lasts."""
        thread = threading.get_ident()
        if thread in self.threads:
            raise waits_for_itself()
        self.threads.add(thread)
        try:
            yield thread
        finally:
            self.threads.discard(thread)


@contextmanager
def limited(ms_max: int, time_is_up: Callable[[], None]) -> Iterator[None]:
    """Call a function, in a thread of its own, if the block lasts longer than it may."""
    timer = threading.Timer(ms_max / 1000, time_is_up)
    timer.name, timer.daemon = "tally-transaction-limit", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def waits_for_itself() -> StoreMisused:
    """Return the error of a borrower that would wait for what its own transaction may hold up."""
    return StoreMisused(
        "this thread holds app.transaction() and would wait for itself: submit within= it, or end it "
        "first; on an event loop any task may hold it, so the others use the _aio calls meanwhile"
    )


def too_long(ms_max: int) -> TxTooLong:
    """Return the error of a transaction whose time is up."""
    return TxTooLong(f"the transaction took more than {ms_max} ms and was rolled back", ms_max=ms_max)


def refuse_bounds(bounds: re.Pattern[str], sql: str) -> None:
    """Refuse a statement that would begin or end the transaction; its first word is the pattern's group."""
    if bound := bounds.match(sql):
        raise BadInput(
            f"{bound[1].upper()} is not for a transaction on loan: it begins and ends with your function",
            sql=sql,
        )
