"""A parent of 1,200 children, and worker processes for the one or for the others.

python -m tests.app.programs.crowd URL QUEUE [dies]: by `kill -9`, when the first of the births are durable.
"""

from __future__ import annotations

import os
import signal
import sys

from tallystick import Tally, gather
from tallystick.app.workflows import Workflow
from tests.app.cut_spawn import cut_spawn

MANY = 1_200
PARENTS, CHILDREN = "parents", "children"


def declare(app: Tally) -> Workflow[[], int]:
    """Return the workflow of the parent, which adds up what its children return."""

    @app.workflow(queue=CHILDREN)
    def child(n: int) -> int:
        return n

    @app.workflow(queue=PARENTS)
    def crowd() -> int:
        return sum(gather(*(child.child(n) for n in range(MANY))))

    return crowd


if __name__ == "__main__":
    url, queue, *deadly = sys.argv[1:]
    tally = Tally(url)
    declare(tally)
    if deadly:
        cut_spawn(setattr, lambda: os.kill(os.getpid(), signal.SIGKILL))
    with tally.worker(queues=[queue], lease="1s"):
        signal.pause()
