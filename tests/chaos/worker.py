"""A worker process of a run: `python -m tests.chaos.worker FOLDER SLOT`. It works until told to stop."""

from __future__ import annotations

import logging
import sys

from tests.chaos.place import LEASE_SECONDS
from tests.chaos.work import settle_in
from tests.chaos.work_outside import app
from tests.patience import let_time_pass

CONCURRENCY = 6
QUEUES = ("default", "narrow")


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)d %(name)s %(message)s")
    place = settle_in(sys.argv[1], int(sys.argv[2]))
    with app.worker(queues=QUEUES, concurrency=CONCURRENCY, lease=LEASE_SECONDS, grace=2.0):
        while not place.marked("stop"):
            let_time_pass(0.05)
    app.close()


if __name__ == "__main__":
    main()
