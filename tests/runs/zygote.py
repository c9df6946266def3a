"""A small process that forks a child for each command, so that a thousand real `kill -9` cost seconds.

Commands come as lines of JSON: where to run the toy pipeline, and where to die. The answer is the exit
status.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tallystick import crash
from tallystick.clock import VirtualClock
from tallystick.errors import TallyError
from tallystick.runs.conduct import Surroundings, conduct
from tallystick.runs.toy import toy_publishing


def child(command: dict) -> int:
    pipeline = toy_publishing(command.get("fixes", 1))
    if calls := command.get("calls"):
        pipeline.nodes[:] = [counted(node, Path(calls)) for node in pipeline.nodes]
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
