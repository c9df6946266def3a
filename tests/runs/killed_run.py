"""The toy pipeline for the fork server: a command says where to run it, and where it is killed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tallystick import crash
from tallystick.clock import VirtualClock
from tallystick.errors import TallyError
from tallystick.ids import CountingIds
from tallystick.runs.orchestrator.start import Surroundings, start_or_resume
from tallystick.runs.toy import toy_publishing
from tallystick.runs.workers.receipts import PREFIX, Receipts
from tests.fork_server import serve


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
    around = Surroundings(clock=VirtualClock(), ids=CountingIds(command["ids"]))
    try:
        start_or_resume(
            pipeline, command["root"], command["run_id"], parallel=command.get("parallel", 1), around=around
        )
    except TallyError as error:
        sys.stderr.write(f"{error.code}\n")
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


if __name__ == "__main__":
    serve(child)
