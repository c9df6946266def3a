"""A small process that forks a child for each command, so that a thousand real `kill -9` cost seconds.

Commands come as lines of JSON: where to run the toy pipeline, and where to die. The answer is the exit
status.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from tallystick import crash
from tallystick.clock import VirtualClock
from tallystick.errors import TallyError
from tallystick.runs.conduct import Surroundings, conduct
from tallystick.runs.receipts import PREFIX, Receipts
from tallystick.runs.toy import toy_publishing


def child(command: dict) -> int:
    pipeline = toy_publishing(command.get("fixes", 1))
    if calls := command.get("calls"):
        pipeline.nodes[:] = [counted(node, Path(calls)) for node in pipeline.nodes]
    if worker := command.get("raises"):
        pipeline.nodes[:] = [
            raising(node, tries=2) if node.worker == worker else node for node in pipeline.nodes
        ]
    if command.get("out_of_turn"):
        staged = Path(command["root"], command["run_id"], "artifacts", ".staged")
        pipeline.nodes[:] = [out_of_turn(node, staged) for node in pipeline.nodes]
    crash.arm(command.get("crash", ""))
    around = Surroundings(clock=VirtualClock())
    try:
        conduct(
            pipeline, command["root"], command["run_id"], parallel=command.get("parallel", 1), around=around
        )
    except TallyError as error:
        print(error.code, file=sys.stderr)
        return 3
    return 0


def counted(node, path: Path):
    """Return the node with a line in a file for every call of its function."""
    from dataclasses import replace

    def function(work):
        with path.open("a") as calls:
            calls.write(f"{work.work_item_id}\n")
        return node.function(work)

    return replace(node, function=function)


def raising(node, tries: int):
    """Return the node with a function that leaves an issue and raises."""
    from dataclasses import replace

    def function(work):
        work.open_issue("raising", "warn", f"attempt {work.attempt}")
        raise ValueError("as always")

    return replace(node, function=function, tries=tries)


def out_of_turn(node, staged: Path):
    """Return the node; of the drafts the first returns only when the two others have their receipts."""
    from dataclasses import replace

    kept, keep = threading.Condition(), Receipts.keep

    def noticed(self, *work):
        keep(self, *work)
        with kept:
            kept.notify_all()

    def function(work):
        node.function(work)
        with kept:
            assert kept.wait_for(lambda: len(list(staged.glob(f"{PREFIX}*"))) == 2, 20)

    def chosen(work):
        return (function if work.scope == "intro" else node.function)(work)

    if node.worker != "drafter":
        return node
    Receipts.keep = noticed
    return replace(node, function=chosen)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 9
            try:
                status = child(json.loads(line))
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
