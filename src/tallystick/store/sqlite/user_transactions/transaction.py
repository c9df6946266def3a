"""The transaction a user's function works in: a connection on loan.

It is valid in the thread it was lent to and until the function ends; afterwards, or from elsewhere, every
call is a clear error instead of a write that lands in another transaction.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from tallystick.store.api import Bundle, Outcome
from tallystick.store.borrowing import Borrowing, refuse_bounds

# Remarks, blanks and semicolons may stand before the word that counts.
_BOUNDS = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(begin|commit|end|rollback|savepoint|release|attach|detach|vacuum|pragma)\b",
    re.IGNORECASE | re.DOTALL,
)
_INTERRUPT_SECONDS = 0.01

Parameters = Sequence[object] | Mapping[str, object]


class _Executed(NamedTuple):
    """One call on the loan and its answer: rows, an outcome, or the class of an error."""

    call: Callable[[apsw.Connection, Callable[[Bundle], Outcome]], object]
    answer: object


class SqliteTransaction:
    """What `db` is inside a `tx` function and `app.transaction()`: your tables, our transaction."""

    def __init__(
        self,
        connection: apsw.Connection,
        apply: Callable[[Bundle], Outcome],
        *,
        borrower: int | None = None,
        reading: bool = False,
    ) -> None:
        """Lend the connection to a thread: the calling one, or the first that uses it.

        One that is only for reading has no transaction around its statements, and none to lose.
        """
        self._reading = reading
        self._connection = connection
        self._apply = apply
        self._loan = Borrowing(borrower)
        self._calling = threading.Lock()
        self._said: list[_Executed] = []
        self.lost = False

    @property
    def file(self) -> str:
        """Return the file that it is on."""
        with self._calling:
            return self._lent().db_filename("main")

    def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        rows: list[tuple[Any, ...]] = self._call(
            lambda connection, _apply: list(_guarded(connection).execute(sql, _bound(parameters)))
        )
        return rows

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        values = [_bound(row) for row in rows]
        found: list[tuple[Any, ...]] = self._call(
            lambda connection, _apply: list(_guarded(connection).executemany(sql, values))
        )
        return found

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles here: it becomes durable with the user's rows, or not at all."""
        return self._call(lambda _connection, apply: apply(bundle))

    def finish(self) -> None:
        """End the loan, of which nothing runs any more; raise if its time was up before."""
        self._loan.end()
        self._loan.check_time()

    def revoke(self, ms_max: int) -> bool:
        """End the loan because its time is up, and undo everything, whatever the borrower does meanwhile.

        Return False if it had ended before.
        """
        if not self._loan.end(after_ms=ms_max):
            return False
        self.take_back()
        with self._calling:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return True

    def take_back(self) -> None:
        """End the loan: interrupt the statement that runs, wait for it to leave, refuse every later call."""
        self._loan.end()
        # A statement that is about to start would not notice one interrupt, so we go on until it has left.
        while True:
            self._connection.interrupt()
            if self._calling.acquire(timeout=_INTERRUPT_SECONDS):
                self._calling.release()
                return

    def say_again(self, connection: apsw.Connection, apply: Callable[[Bundle], Outcome]) -> bool:
        """Repeat every call in a new transaction and return whether every answer was the same."""
        return all(_answer(said.call, connection, apply)[0] == said.answer for said in self._said)

    def _call(self, call: Callable[[apsw.Connection, Callable[[Bundle], Outcome]], object]) -> Any:  # noqa: ANN401 (rows or an outcome)
        with self._calling:
            connection = self._lent()
            answer, error = _answer(call, connection, self._apply)
            if not self._reading:
                self._said.append(_Executed(call, answer))
            if not self._reading and not connection.in_transaction:
                # OR ROLLBACK, or an interrupted write. A statement that came now would be durable at once.
                self.lost = True
                self._loan.end()
            if error is not None:
                self._loan.check_time()
                raise error
            return answer

    def _lent(self) -> apsw.Connection:
        self._loan.check()
        return self._connection


def _answer(
    call: Callable[[apsw.Connection, Callable[[Bundle], Outcome]], object],
    connection: apsw.Connection,
    apply: Callable[[Bundle], Outcome],
) -> tuple[object, BaseException | None]:
    try:
        return call(connection, apply), None
    except BaseException as error:  # noqa: BLE001 (the borrower's; raised again where it is heard)
        return type(error), error


def _guarded(connection: apsw.Connection) -> apsw.Cursor:
    """Return a cursor that refuses statements that bound a transaction, also the second one of a text."""
    cursor = connection.cursor()
    cursor.exec_trace = _check_statement
    return cursor


def _check_statement(_cursor: apsw.Cursor, sql: str, _parameters: object) -> bool:
    refuse_bounds(_BOUNDS, sql)
    return True


def _bound(parameters: Parameters) -> Any:  # noqa: ANN401 (apsw checks each value as it binds it, and says which is wrong)
    return parameters
