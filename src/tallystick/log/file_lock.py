"""The exclusive lock of an open file: one process has it, and it ends with the descriptor or the process."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import fcntl


def try_lock(descriptor: int) -> bool:
    """Take the exclusive lock of a file now, or return False because another process has it.

    Windows has no such lock: there two processes are not kept apart.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
