"""A worker process of many slots that is killed, or kills itself over one of its jobs.

While the file `hang` lies in its folder every job stands still, so that all are lost with the process.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tallystick import Tally
from tests.patience import let_time_pass

LEASE_SECONDS = 2
SLOTS = 64


def declare(app: Tally, folder: Path) -> tuple[Any, Any]:
    """Return a job of a second, and one that kills its worker."""

    @app.workflow
    def second() -> int:
        while (folder / "hang").exists():
            let_time_pass(0.05)
        let_time_pass(1)
        return os.getpid()

    @app.workflow
    def poison() -> int:
        let_time_pass(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    return second, poison


if __name__ == "__main__":
    tally = Tally(sys.argv[1])
    declare(tally, Path(sys.argv[2]))
    with tally.worker(concurrency=SLOTS, lease=LEASE_SECONDS):
        signal.pause()
