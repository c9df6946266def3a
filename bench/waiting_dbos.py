"""One measurement of waiting in DBOS on SQLite, run by the Python of its own environment; prints JSON lines.

    python -m bench.waiting_dbos '{"case": "fan", "children": 100, "wal": true, "folder": "."}'

`fan`: a workflow starts children in the background, the fastest way it has to run them side by side, and adds
up their results. `signal`: a workflow waits for a message; as many round trips as each line of standard input
says, from the sending to the awaited result. Nothing is switched off; logging is limited to errors.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from dbos import DBOS

from bench.peer_dbos import launch, settings

# How long a workflow that was started is given to reach its wait, before the clock runs.
SETTLE_SECONDS = 0.3


@DBOS.workflow()
def leaf(number: int) -> int:
    return number


@DBOS.workflow()
def fan(children: int) -> int:
    handles = [DBOS.start_workflow(leaf, number) for number in range(children)]
    return sum(handle.get_result() for handle in handles)


@DBOS.workflow()
def waiter() -> int:
    return DBOS.recv("go", timeout_seconds=60)


def measure_fan(children: int) -> float:
    """Return the seconds from the start of the parent to its result."""
    fan(5)
    begun = time.perf_counter()
    assert fan(children) == children * (children - 1) // 2
    return time.perf_counter() - begun


def measure_signals(count: int) -> list[float]:
    """Return the milliseconds of each round trip, one after the other."""
    taken = []
    for number in range(count):
        handle = DBOS.start_workflow(waiter)
        time.sleep(SETTLE_SECONDS)
        begun = time.perf_counter()
        DBOS.send(handle.workflow_id, number, "go")
        assert handle.get_result() == number
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def main() -> None:
    order = json.loads(sys.argv[1])
    path = launch(Path(order["folder"]), wal=order["wal"])
    answer: dict[str, object] = settings(path)
    if order["case"] == "fan":
        answer["seconds"] = measure_fan(order["children"])
    else:
        measure_signals(1)
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            print(json.dumps(measure_signals(int(line))), flush=True)
    print(json.dumps(answer), flush=True)
    # Its background threads poll with long sleeps; what was measured is durable, so nothing is left to do.
    os._exit(0)


if __name__ == "__main__":
    main()
