"""One measurement of Tallystick, in a process of its own; prints JSON lines.

    python -m bench.ours '{"case": "async", "steps": 10, "jobs": 2048, "in_flight": 64, "folder": "..."}'

`async` and `sync`: jobs are submitted, run by the worker of this process in `in_flight` slots, and their
results awaited; the clock runs from the first submission to the last result. `alone`: one job at a time, as
many as each line of standard input says. `claim`: a long queue claimed from end to end. `memory`: many jobs,
and what the process holds meanwhile. Everything is at its default: synchronous=FULL, fences, events, chain.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

import apsw

from bench.memory_of import resident_kib
from bench.our_workflows import app, async_workflow, sync_workflow
from tallystick.store.api import ClaimJobs

CLAIM_SIZE = 64
MEMORY_SAMPLES = 50


def run_jobs(case: str, steps: int, jobs: int) -> float:
    """Return the seconds from the first submission to the last result."""
    workflow = async_workflow if case == "async" else sync_workflow
    begun = time.perf_counter()
    for job in workflow.submit_many([(steps,)] * jobs):
        assert job.result(timeout=120) == steps
    return time.perf_counter() - begun


def throughput(order: dict) -> dict:
    steps, in_flight = order["steps"], order["in_flight"]
    with app.worker(concurrency=in_flight):
        run_jobs(order["case"], steps, 2 * in_flight)
        committer = app.runtime().committer
        flushes, bundles = committer.flushes, committer.bundles
        seconds = run_jobs(order["case"], steps, order["jobs"])
        return {
            "seconds": seconds,
            "flushes": committer.flushes - flushes,
            "bundles": committer.bundles - bundles,
            "resident_kib": resident_kib(),
        }


def alone(order: dict) -> dict:
    """Run as many jobs as each line says, one after the other, so that both sides can take turns."""
    with app.worker(concurrency=order["in_flight"]):
        for _ in range(5):
            sync_workflow.submit(order["steps"]).result(timeout=60)
        print(json.dumps({"ready": True}), flush=True)
        taken = []
        for line in sys.stdin:
            now = []
            for _ in range(int(line)):
                begun = time.perf_counter()
                assert sync_workflow.submit(order["steps"]).result(timeout=60) == order["steps"]
                now.append((time.perf_counter() - begun) * 1000)
            taken += now
            print(json.dumps(now), flush=True)
        return {"milliseconds": taken}


def claim(order: dict) -> dict:
    """Queue many jobs, then claim all of them, and return how long each claim took with how many it got."""
    jobs = order["jobs"]
    for start in range(0, jobs, 1_000):
        sync_workflow.submit_many([(1,)] * min(1_000, jobs - start))
    store = app.runtime().store
    leases = iter(range(jobs))
    request = ClaimJobs(
        owner="bench",
        queues=("default",),
        handlers=frozenset(app.workflows),
        limit=CLAIM_SIZE,
        lease_ms=600_000,
        lease_ids=lambda: f"lease-{next(leases)}",
    )
    claims = []
    while True:
        begun = time.perf_counter()
        (claimed,) = store.apply([(request,)])
        store.checkpoint()
        if not claimed:
            return {"claims": claims}
        claims.append((len(claimed), time.perf_counter() - begun))


def memory(order: dict) -> dict:
    """Run many jobs in rounds and return what the process held meanwhile."""
    jobs = order["jobs"]
    size = max(1, jobs // MEMORY_SAMPLES)
    samples = []
    with app.worker(concurrency=order["in_flight"]):
        begun = time.perf_counter()
        for done in range(size, jobs + 1, size):
            for start in range(0, size, 1_000):
                run_jobs("async", order["steps"], min(1_000, size - start))
            gc.collect()
            samples.append((done, resident_kib(), sys.getallocatedblocks()))
    return {"samples": samples, "seconds": time.perf_counter() - begun}


def main() -> None:
    order = json.loads(sys.argv[1])
    app.bind(f"sqlite:///{Path(order['folder']) / 'ours.db'}")
    cases = {"async": throughput, "sync": throughput, "alone": alone, "claim": claim, "memory": memory}
    answer = cases[order["case"]](order)
    answer["sqlite"] = apsw.sqlite_lib_version()
    app.close()
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
