"""A stage for the fork server: it squares numbers and is killed on command."""

from __future__ import annotations

import os

from tallystick import crash
from tallystick.stage import CommitBatch, Stage, WindowLimits
from tests.fork_server import serve


def child(command: dict) -> int:
    """Run the stage; it writes down what it does with one write call each, a witness beside the journal."""
    folder = command["folder"]
    computed = os.open(f"{folder}/computed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    committed = os.open(f"{folder}/committed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def square(item: int) -> int:
        os.write(computed, f"{item}\n".encode())
        return item * item

    def keep(batch: CommitBatch) -> None:
        values = " ".join(str(outcome.value) for outcome in batch.outcomes)
        os.write(committed, f"{batch.first} {batch.redelivered} {values}\n".encode())

    crash.arm(command["crash"])
    windows = WindowLimits(count=2, active=1)
    stage = Stage(square, commit=keep, journal=f"{folder}/journal", workers=2, windows=windows)
    summary = stage.run(range(command["items"]))
    return 0 if summary.complete else 3


if __name__ == "__main__":
    serve(child)
