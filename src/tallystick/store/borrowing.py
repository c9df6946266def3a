"""Who may use a transaction on loan, and for how long: one thread, until the loan ends."""

from __future__ import annotations

import re
import threading

from tallystick.errors import BadInput, StoreMisused


class Borrowing:
    """A loan: open until it is ended, and for the thread it was given to, or the first that uses it."""

    __slots__ = ("_borrower", "open")

    def __init__(self, borrower: int | None) -> None:
        """Begin the loan."""
        self._borrower = borrower
        self.open = True

    def check(self) -> None:
        """Refuse a call after the end, or by somebody else: it would land in another's transaction."""
        if not self.open:
            raise StoreMisused(
                "this transaction has ended; use it only inside the function or block it was given to"
            )
        self._borrower = self._borrower or threading.get_ident()
        if threading.get_ident() != self._borrower:
            raise StoreMisused(
                "a transaction belongs to the thread it was given to; join other threads before it"
            )


def refuse_bounds(bounds: re.Pattern[str], sql: str) -> None:
    """Refuse a statement that would begin or end the transaction; its first word is the pattern's group."""
    if bound := bounds.match(sql):
        raise BadInput(
            f"{bound[1].upper()} is not for a transaction on loan: it begins and ends with your function",
            sql=sql,
        )
