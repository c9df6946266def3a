"""Threads for what must not block a loop: as many as there is work, and none of them keeps a program alive.

The executor that asyncio has for this gives a few threads to all callers, so that bodies that wait for each
other would never end, and a body that is stuck would keep the interpreter from exiting.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

T = TypeVar("T")


class ThreadAnswer(NamedTuple, Generic[T]):
    """What a function returned, or what it raised: a future takes no `StopIteration`."""

    returned: T | None
    raised: BaseException | None

    def value(self) -> T:
        """Return it, or raise it."""
        if self.raised is not None:
            raise self.raised
        return cast("T", self.returned)


_Work: TypeAlias = tuple[Future[ThreadAnswer[Any]], Callable[[], Any]]

# A thread that is not needed for so long ends.
_IDLE_SECONDS: Final = 10.0

_idle: Final[list[SimpleQueue[_Work]]] = []
_numbers: Final = itertools.count(1)

# In a child the threads are not there.
os.register_at_fork(after_in_child=_idle.clear)


def run_in_daemon_thread(function: Callable[[], T]) -> Future[ThreadAnswer[T]]:
    """Run a function in a thread that is idle or new."""
    future: Future[ThreadAnswer[T]] = Future()
    # From now on it cannot be cancelled: the waiting task may go, the thread does not.
    future.set_running_or_notify_cancel()
    try:
        box = _idle.pop()
    except IndexError:
        box = SimpleQueue()
        threading.Thread(target=_main, args=(box,), name=f"tally-body-{next(_numbers)}", daemon=True).start()
    box.put((future, function))
    return future


def _main(box: SimpleQueue[_Work]) -> None:
    while True:
        try:
            future, function = box.get(timeout=_IDLE_SECONDS)
        except Empty:
            try:
                _idle.remove(box)
            except ValueError:
                continue  # a caller has taken it, and is about to put work into it
            return
        answer = _answered(function)
        # Idle before the answer is given, so that the caller finds a thread to go on with.
        _idle.append(box)
        future.set_result(answer)
        del future, function, answer


def _answered(function: Callable[[], Any]) -> ThreadAnswer[Any]:
    try:
        return ThreadAnswer(function(), None)
    except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
        return ThreadAnswer(None, error)
