"""Runs worker threads under SCHED_BATCH on Linux; child processes do not inherit it.

A woken thread then runs after the thread that woke it has gone to sleep. That one still holds the lock of the
interpreter: to run at once means to wait for it, and to be woken a second time. The share of the processor
stays the same.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import cache, partial
from typing import Final

_SPAWNS: Final = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"}
)


class _ThreadPolicy(threading.local):
    """Whether this thread has asked for SCHED_BATCH."""

    batch = False


_policy = _ThreadPolicy()


def schedule_as_batch() -> None:
    """Ask for SCHED_BATCH for this thread, unless the user has chosen a policy or the system has none."""
    if _policy.batch or not hasattr(os, "sched_setscheduler"):
        return
    if os.sched_getscheduler(0) == os.SCHED_OTHER and _set(os.SCHED_BATCH):
        _policy.batch = True
        _watch_spawns()


@cache
def _watch_spawns() -> None:
    """Give up the policy in a thread that is about to start a process, which would inherit it.

    A hook outlives its module: it keeps what it needs, because the interpreter clears modules before it ends.
    """
    spawns, policy, reset = _SPAWNS, _policy, partial(_set, os.SCHED_OTHER)

    def on_event(event: str, _arguments: object) -> None:
        if event in spawns and policy.batch:
            policy.batch = False
            reset()

    sys.addaudithook(on_event)


def _set(policy: int) -> bool:
    with suppress(OSError):  # not permitted here: it costs speed only
        os.sched_setscheduler(0, policy, os.sched_param(0))
        return True
    return False
