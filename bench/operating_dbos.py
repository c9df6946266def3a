"""One measurement of a DBOS queue with limits on SQLite, run by the Python of its environment; prints JSON.

    python -m bench.operating_dbos '{"jobs": 100, "keys": 50, "limits": {"per_key": 1}, "wal": true, ...}'

The queue is filled before it is registered, which starts its thread; the clock runs from there to the last
result. It looks for work every 50 ms, twenty times as often as it is shipped.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from dbos import DBOS, SetEnqueueOptions

from bench.dbos_workflows import sync_workflow
from bench.peer_dbos import launch, settings

QUEUE, POLL_SECONDS, SLOTS = "q", 0.05, 64


def their_limits(limits: dict) -> dict:
    """Return our limits in their words."""
    said: dict[str, object] = {"worker_concurrency": SLOTS}
    if "per_key" in limits:
        said["partition_concurrency"] = limits["per_key"]
    if "rate" in limits:
        many, _, _second = limits["rate"].partition("/")
        said["limiter"] = {"limit": int(many), "period": 1.0}
    return said


def main() -> None:
    order = json.loads(sys.argv[1])
    path = launch(Path(order["folder"]), wal=order["wal"])
    handles = []
    for number in range(order["jobs"]):
        key = f"k{number % order['keys']}" if "per_key" in order["limits"] else None
        with SetEnqueueOptions(queue_partition_key=key):
            handles.append(DBOS.enqueue_workflow(QUEUE, sync_workflow, 1))
    cpu, begun = time.process_time(), time.perf_counter()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL_SECONDS, **their_limits(order["limits"]))
    for handle in handles:
        assert handle.get_result(polling_interval_sec=POLL_SECONDS) == 1
    seconds = time.perf_counter() - begun
    used = (time.process_time() - cpu) / order["jobs"] * 1e6
    print(
        json.dumps({**settings(path), "seconds": seconds, "jobs": order["jobs"], "cpu_us": used}), flush=True
    )
    # Its background threads poll with long sleeps; what was measured is durable, so nothing is left to do.
    os._exit(0)


if __name__ == "__main__":
    main()
