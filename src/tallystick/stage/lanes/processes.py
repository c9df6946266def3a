"""Compute in other processes: one process per worker, JSON through a pipe, no pickled data.

A worker's thread in the stage hands items to its process and waits. A process that dies takes only its
item with it: that attempt fails as `WorkerDied`, the process is replaced. When the stage itself is killed
its processes see that and leave.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from tallystick.core.lifecycles import SlotState
from tallystick.errors import BadInput
from tallystick.stage.lanes.compute import NEEDS_JSON, attempt, encode
from tallystick.stage.lanes.heartbeat import beats_with
from tallystick.stage.outcome import FAIL, SUCCESS, ItemFailure, Result

TICK: Final = b"tick"
READY: Final = b"ready"
WORKER_DIED: Final = ("WorkerDied", "Exception", "builtins.Exception")
_EXIT_SECONDS: Final = 2.0

# Slot state, value, failure, error names: a result without what the other side can work out.
_Reply = tuple[int, msgspec.Raw, ItemFailure | None, tuple[str, ...]]
_replies: Final = msgspec.json.Decoder(_Reply)


def serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Compute what comes through the pipe until it ends; runs in the worker's process."""
    # Ctrl-C goes to the whole group; the stage alone decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, name="stage-parent-watch", daemon=True).start()

    def renew() -> bool:
        pipe.send_bytes(TICK)
        return True

    beats_with(renew)
    pipe.send_bytes(READY)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            result = attempt(function, msgspec.json.decode(pipe.recv_bytes()), as_json=True)
            raw = msgspec.Raw(result.raw or b"null")
            pipe.send_bytes(msgspec.json.encode((int(result.state), raw, result.failure, result.error_names)))


def _leave_with_parent() -> None:
    """End this process when the stage is gone, also in the middle of an item."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class ProcessWorker:
    """The process behind one worker; `kill` may be called by any thread, all else by the worker's own.

    It is started before an item is taken, so that no lease runs out while an interpreter starts.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, item: object, renew: Callable[[], bool]) -> Result:
        """Compute one item over there; whatever happens to the process is a result."""
        pipe = self._pipe
        assert pipe is not None, "start comes before run"
        try:
            pipe.send_bytes(encode(item, "item", NEEDS_JSON))
            while (reply := pipe.recv_bytes()) == TICK:
                renew()
        except (EOFError, OSError):
            code = self._bury()
            failure = ItemFailure("WorkerDied", f"the worker process ended (exit code {code})")
            return Result(FAIL, None, None, 0, failure, WORKER_DIED)
        state, raw, failure_found, names = _replies.decode(reply)
        if state != SUCCESS:
            return Result(SlotState(state), None, None, len(reply), failure_found, names)
        value = bytes(raw)
        return Result(SUCCESS, msgspec.json.decode(value), value, len(value))

    def kill(self) -> None:
        """End the process at once; the thread in `run` sees the end of its pipe."""
        process = self._process
        # Its thread may be burying the process at this moment; then there is nothing left to kill.
        with contextlib.suppress(ValueError):
            if process is not None:
                process.kill()

    def close(self) -> None:
        """Let the process go; it leaves by itself when nothing runs in it."""
        if self._pipe is not None:
            self._pipe.close()
            self._process.join(_EXIT_SECONDS)
            self._bury()

    @property
    def is_running(self) -> bool:
        """Tell whether there is a process to hand an item to."""
        return self._pipe is not None

    def start(self) -> None:
        """Start the process and wait until it can compute; raise `BadInput` if it never will."""
        pipe = self._spawn()
        try:
            pipe.recv_bytes()
        except (EOFError, OSError) as error:
            code = self._bury()
            raise BadInput(
                f"a worker process ended (exit code {code}) before it could compute. Can it import the "
                "module of the function? A script needs `if __name__ == '__main__':` around what it does",
                exit_code=code,
            ) from error

    def _spawn(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(self._function, theirs), daemon=True)
        try:
            process.start()
        except (AttributeError, TypeError, ValueError, OSError) as error:
            raise _unfit(self._function, error) from error
        except Exception as error:
            # A function that cannot be found by name in another process raises PicklingError.
            if "ickl" not in type(error).__name__:
                raise
            raise _unfit(self._function, error) from error
        theirs.close()
        self._process, self._pipe = process, ours
        return ours

    def _bury(self) -> int | None:
        """Make sure that the process is gone and forget it; return its exit code."""
        process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is None:
            return None
        process.kill()
        process.join()
        code: int | None = process.exitcode
        process.close()
        return code


def _unfit(function: Callable[[Any], Any], error: Exception) -> BadInput:
    name = getattr(function, "__qualname__", repr(function))
    return BadInput(
        f"{name} cannot be called in another process ({error}); define it at the top of a module",
        function=name,
    )
