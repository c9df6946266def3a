"""A parent of many children: a process that takes one part in their story, and may die at a commit of it.

python -m tests.app.programs.crowd URL BUNDLE: so many children are born at once. Every line of its input is
the part of one process, a fork of this one: at what hour it comes (what an earlier one held has run out by
then), what it does, and at which commit it dies by `kill -9`. Its end is answered with a line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

from tallystick import ChildrenFailed, Tally, crash, gather
from tallystick.testing.stepping import ClaimedSegment, SteppedWorker, VirtualClock
from tests.cut_spawn import small_spawns

CHILDREN = "children"
HOUR_MS = 3_600_000


class Part(NamedTuple):
    """What a process does: a parent's part, that of so many children, the cancelling of one, or all."""

    role: str
    about: str = ""
    phase: str = ""
    side: str = ""
    visit: int = 1

    def reach(self, phase: str, url: str) -> None:
        """Come to a phase; its commits are counted from here."""
        if phase == self.phase:
            store = "sqlite" if url.startswith("sqlite") else "postgres"
            crash.arm(f"{store}.commit.{self.side}:{self.visit}")


def declare(app: Tally) -> Any:
    """Return the workflow of the parent, which counts those of its children that did not succeed."""

    @app.workflow(queue=CHILDREN)
    def child(n: int, fails: bool) -> int:
        if fails:
            raise ValueError("no")
        return n

    @app.workflow
    def crowd(many: int) -> int:
        try:
            gather(*(child.child(n, n in {1, many - 2}) for n in range(many)))
        except ChildrenFailed as failed:
            return len(failed.errors)
        return 0

    return crowd


def play(url: str, hours: int, part: Part) -> None:
    """Take over what was lost, and do one part or all that is left."""
    clock = VirtualClock()
    clock.advance(hours * HOUR_MS)
    app = Tally(url, clock=clock)
    declare(app)
    parent, children = SteppedWorker(app, clock), SteppedWorker(app, clock, queues=(CHILDREN,))
    parent.expire()
    part.reach("claim", url)
    match part.role:
        case "parent":
            segment = parent.claim()
            part.reach("run", url)
            if segment is not None:
                parent.run(segment)
        case "children":
            segments = claimed(children, int(part.about))
            part.reach("run", url)
            children.run_together(segments)
        case "cancel":
            part.reach("run", url)
            app.job(part.about).cancel()
        case "all":
            work_all(parent, children, int(part.about))
    app.close()


def work_all(parent: SteppedWorker, children: SteppedWorker, together: int) -> None:
    """Do what is due until nothing is: children first, so many together."""
    while True:
        segments = claimed(children, together)
        children.run_together(segments)
        if not segments and parent.work() == "idle":
            return


def claimed(hand: SteppedWorker, count: int) -> list[ClaimedSegment]:
    """Claim so many children, as many at once as a claim gives."""
    segments: list[ClaimedSegment] = []
    while len(segments) < count and (more := hand.claim_many(count - len(segments))):
        segments += more
    return segments


def main() -> None:
    """Let one process live for each line: hours, role, about, phase, side and visit, in a list of JSON."""
    url, bundle = sys.argv[1:]
    small_spawns(setattr, int(bundle))
    for line in sys.stdin:
        hours, *told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            play(url, hours, Part(*told))
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
