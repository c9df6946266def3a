"""What an `async def` tx is given: the transaction, with calls that are awaited.

The transaction lives in a thread, the function on the loop of its workflow. The thread waits for what the
function asks, does it, and answers; so a transaction belongs to one thread here too, and blocks no loop.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from tallystick.app.running.user_exceptions import OURS, Escaped
from tallystick.clock import SystemClock
from tallystick.errors import StoreMisused
from tallystick.store.api import Transaction
from tallystick.store.borrowing import too_long

Parameters = Sequence[object] | Mapping[str, object]


class _TxCall(NamedTuple):
    """One thing that the function wants of its transaction, and where it waits for the answer."""

    function: Callable[[Transaction], Any]
    answer: Future[Any]

    def run(self, transaction: Transaction) -> None:
        """Do it, and say what came of it."""
        if not self.answer.set_running_or_notify_cancel():
            return  # its task was cancelled
        try:
            self.answer.set_result(self.function(transaction))
        except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
            self.answer.set_exception(error)


class AsyncTx:
    """The transaction of an `async def` tx, for PostgreSQL: your writes and the marker of the step in one."""

    def __init__(self) -> None:
        """Begin; `serve` answers."""
        self._calls: queue.SimpleQueue[_TxCall | None] = queue.SimpleQueue()
        self._over = False

    async def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        rows: list[tuple[Any, ...]] = await self.ask(lambda db: db.execute(sql, parameters))
        return rows

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        values = list(rows)
        found: list[tuple[Any, ...]] = await self.ask(lambda db: db.executemany(sql, values))
        return found

    async def ask(self, function: Callable[[Transaction], Any]) -> Any:  # noqa: ANN401 (as the function returns)
        """Have the thread of the transaction call a function with it."""
        if self._over:
            raise StoreMisused("this transaction has ended; use it only inside the function it was given to")
        answer: Future[Any] = Future()
        self._calls.put(_TxCall(function, answer))
        return await asyncio.wrap_future(answer)

    def serve(
        self,
        transaction: Transaction,
        body: Coroutine[Any, Any, Any],
        loop: asyncio.AbstractEventLoop,
        ms_max: int,
    ) -> Any:  # noqa: ANN401 (as annotated by the user)
        """Run the function on its loop, do here what it asks of the transaction, and return its result."""
        clock = SystemClock()
        until = clock.monotonic() + ms_max / 1000
        running = asyncio.run_coroutine_threadsafe(_contained(body), loop)
        running.add_done_callback(lambda _running: self._calls.put(None))
        try:
            while (call := self._calls.get(timeout=max(0.0, until - clock.monotonic()))) is not None:
                call.run(transaction)
            return running.result()
        except queue.Empty:
            raise too_long(ms_max) from None
        finally:
            running.cancel()
            self._end()

    def _end(self) -> None:
        """Answer the calls that came too late."""
        self._over = True
        while not self._calls.empty():
            if (call := self._calls.get()) is not None and call.answer.set_running_or_notify_cancel():
                call.answer.set_exception(StoreMisused("this transaction has ended"))


async def _contained(body: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Await a user's function; what it raises is an `Exception`, whatever it raises, or ours."""
    try:
        return await body
    except (Exception, *OURS):
        raise
    except BaseException as error:
        raise Escaped(error) from error
