"""The transaction a user's function works in: a connection on loan.

It is valid in the thread it was lent to and until the function ends; afterwards, or from elsewhere, every
call is a clear error instead of a write that lands in somebody else's transaction.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import apsw

from tallystick.errors import BadInput, StoreMisused
from tallystick.store.api import Bundle, Outcome

_BOUNDS = re.compile(
    r"\s*(begin|commit|end|rollback|savepoint|release|attach|detach|vacuum|pragma)\b", re.IGNORECASE
)

Parameters = Sequence[object] | Mapping[str, object]


class SqliteTransaction:
    """What `db` is inside a `tx` function and `app.transaction()`: your tables, our transaction."""

    def __init__(
        self, connection: apsw.Connection, apply: Callable[[Bundle], Outcome], *, borrower: int | None = None
    ) -> None:
        """Lend the connection to a thread: the calling one, or the first that uses it."""
        self._connection = connection
        self._apply = apply
        self._borrower = borrower
        self._open = True
        self._calling = threading.Lock()

    def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        with self._calling:
            return list(self._lent(sql).execute(sql, _bound(parameters)))

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        with self._calling:
            return list(self._lent(sql).executemany(sql, [_bound(row) for row in rows]))

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles here: it becomes durable with the user's rows, or not at all."""
        with self._calling:
            self._lent("")
            return self._apply(bundle)

    def take_back(self) -> None:
        """End the loan: interrupt the statement that runs, wait for it to leave, refuse every later call."""
        self._open = False
        self._connection.interrupt()
        with self._calling:
            return

    def _lent(self, sql: str) -> apsw.Connection:
        if not self._open:
            raise StoreMisused(
                "this transaction has ended; use it only inside the function or block it was given to"
            )
        self._borrower = self._borrower or threading.get_ident()
        if threading.get_ident() != self._borrower:
            raise StoreMisused(
                "a transaction belongs to the thread it was given to; join other threads before it"
            )
        if _BOUNDS.match(sql):
            verb = sql.split(None, 1)[0].upper()
            raise BadInput(
                f"{verb} is not for a transaction on loan: it begins and ends with your function", sql=sql
            )
        return self._connection


def _bound(parameters: Parameters) -> Any:  # noqa: ANN401 (apsw checks each value as it binds it, and says which is wrong)
    return parameters
