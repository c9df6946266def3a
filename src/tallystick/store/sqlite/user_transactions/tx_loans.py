"""Users' transactions inside one flush: each body runs once, and its SQL is repeated if the flush restarts.

SQLite rolls back everything, not only a savepoint, when a statement that writes is interrupted or says
OR ROLLBACK. Then the flush begins again: the body that did it keeps its error, the others are not called a
second time, their statements are repeated and must give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import apsw

from tallystick.errors import BadInput, StoreBusy
from tallystick.store.api import Bundle, Outcome, RecordStep, RunTx
from tallystick.store.borrowing import too_long
from tallystick.store.sqlite.user_transactions.transaction import SqliteTransaction


class TransactionLost(Exception):
    """The transaction of the whole flush is gone; begin again."""


class _LoanPast(NamedTuple):
    loan: SqliteTransaction
    step: RecordStep | None
    error: BaseException | None


class Loans(dict[int, _LoanPast]):
    """The loans of one flush, remembered while it is tried."""

    def step(
        self, request: RunTx, connection: apsw.Connection, apply: Callable[[Bundle], Outcome]
    ) -> RecordStep:
        """Lend the connection to the waiting thread, or repeat what it did, and return its step."""
        past = self.get(id(request))
        if past is None:
            past = self[id(request)] = _lend(request, connection, apply)
            if past.loan.lost:
                raise TransactionLost
        elif past.error is None and not past.loan.say_again(connection, apply):
            raise StoreBusy("this transaction saw rows that changed before it could be kept; run it again")
        if past.error is not None:
            raise past.error
        assert past.step is not None
        return past.step


def _lend(request: RunTx, connection: apsw.Connection, apply: Callable[[Bundle], Outcome]) -> _LoanPast:
    loan = SqliteTransaction(connection, apply)
    step: RecordStep | None = None
    error: BaseException | None = None
    try:
        step = request.turn.lend(loan, request.ms_max / 1000)
    except BaseException as raised:  # noqa: BLE001 (the body's own; it is the outcome of its bundle)
        error = raised
    finally:
        loan.take_back()
    if step is None and error is None:
        error = too_long(request.ms_max)
    if loan.lost and error is None:
        error = BadInput("a statement rolled back the whole transaction; say OR ABORT instead of OR ROLLBACK")
    return _LoanPast(loan, step, error)
