"""A worker process whose jobs hold a lock of the operating system while they run: a kill gives it back."""

from __future__ import annotations

import fcntl
import signal
import sys
from pathlib import Path
from typing import Any

from tallystick import Tally
from tests.patience import let_time_pass

LEASE_SECONDS = 2
CONCURRENCY = 4
PER_KEY = 2
SLOTS = 6


def declare(app: Tally, folder: Path) -> Any:
    """Return a job that runs for a moment, under a lock whose file names its key."""
    app.queue("mails", concurrency=CONCURRENCY, per_key=PER_KEY)

    @app.workflow(queue="mails", attempts=50)
    def mail(name: str) -> str:
        with (folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            let_time_pass(0.03)
            # What has ended is looked at no more, so that a look is short.
            (folder / name).unlink(missing_ok=True)
        return name

    return mail


def running(folder: Path) -> set[str]:
    """Return the names of jobs whose functions run, in whatever process, at one moment: between two looks."""
    return _seen(folder) & _seen(folder)


def _seen(folder: Path) -> set[str]:
    found = set()
    for path in folder.iterdir():
        try:
            with path.open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found.add(path.name)
        except FileNotFoundError:
            continue  # it has just ended
    return found


if __name__ == "__main__":
    tally = Tally(sys.argv[1])
    declare(tally, Path(sys.argv[2]))
    with tally.worker(queues=["mails"], concurrency=SLOTS, lease=LEASE_SECONDS):
        signal.pause()
