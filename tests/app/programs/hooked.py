"""A worker process with a hook, in which it kills itself while the file `deadly` lies in its folder."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tallystick import Job, Tally

LEASE_SECONDS = 1


def declare(app: Tally, folder: Path) -> Any:
    """Return a job that fails; its hook leaves a line in a file."""

    @app.on_failed
    def tell(job: Job[Any]) -> None:
        if (folder / "deadly").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        with (folder / "told").open("a") as told:
            told.write(f"{job.id} {job.row().error_code}\n")

    @app.workflow
    def fails() -> int:
        raise ValueError("no")

    return fails


if __name__ == "__main__":
    tally = Tally(sys.argv[1])
    declare(tally, Path(sys.argv[2]))
    with tally.worker(lease=LEASE_SECONDS):
        signal.pause()
