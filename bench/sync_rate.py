"""The rate at which the disk takes durable writes; everything else is to be read against it."""

from __future__ import annotations

import os
import time
from pathlib import Path

PAGES = 16
SECONDS = 0.1


def sync_rate(folder: Path, seconds: float = SECONDS) -> float:
    """Return how many writes of 64 KiB this folder makes durable in a second, one after the other."""
    page = os.urandom(4096 * PAGES)
    path = folder / "sync-probe"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, page, 0)
        os.fsync(file)
        count = 0
        begun = time.perf_counter()
        while (passed := time.perf_counter() - begun) < seconds:
            os.pwrite(file, page, 0)
            os.fdatasync(file)
            count += 1
        return count / passed
    finally:
        os.close(file)
        path.unlink()
