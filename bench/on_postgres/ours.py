"""One measurement of Tallystick on PostgreSQL, in a process of its own; prints JSON lines.

    python -m bench.on_postgres.ours '{"case": "bulk", "jobs": 10000, "size": 1000, "dsn": "..."}'

`async` and `sync`: jobs are submitted, run by the worker of this process in `in_flight` slots, and their
results awaited. `one-async` and `one-threads`: so many callers submit one job at a time, each waiting
until it is durable. `bulk`: submissions in lists. `fill`: the same for a queue that others will work on.
`work`: a worker that starts when it is told to. Everything is at its default: leases, fences, events,
hash chain, all constraints.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time

from bench.our_workflows import app, async_workflow, sync_workflow


def workflow_of(order: dict):
    return sync_workflow if order.get("colour", order["case"]) == "sync" else async_workflow


def run_jobs(order: dict, jobs: int) -> float:
    """Return the seconds from the first submission to the last result; all results are awaited at once."""

    async def results(submitted: list) -> list:
        return await asyncio.gather(*submitted)

    begun = time.perf_counter()
    submitted = workflow_of(order).submit_many([(order["steps"],)] * jobs)
    assert asyncio.run(results(submitted)) == [order["steps"]] * jobs
    return time.perf_counter() - begun


def throughput(order: dict) -> dict:
    in_flight = order["in_flight"]
    with app.worker(concurrency=in_flight):
        run_jobs(order, 2 * in_flight)
        committer = app.runtime().committer
        flushes, bundles, cpu = committer.flushes, committer.bundles, time.process_time()
        seconds = run_jobs(order, order["jobs"])
        return {
            "seconds": seconds,
            "cpu_seconds": time.process_time() - cpu,
            "flushes": committer.flushes - flushes,
            "bundles": committer.bundles - bundles,
        }


def one_by_one_in_threads(order: dict) -> dict:
    callers, each = order["callers"], order["jobs"] // order["callers"]
    async_workflow.submit(1)
    barrier = threading.Barrier(callers + 1)

    def caller() -> None:
        barrier.wait()
        for _ in range(each):
            async_workflow.submit(1)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return {"seconds": time.perf_counter() - begun, "jobs": callers * each}


def one_by_one_on_a_loop(order: dict) -> dict:
    callers, each = order["callers"], order["jobs"] // order["callers"]

    async def caller() -> None:
        for _ in range(each):
            await async_workflow.submit_aio(1)

    async def measured() -> float:
        await async_workflow.submit_aio(1)
        begun = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return time.perf_counter() - begun

    return {"seconds": asyncio.run(measured()), "jobs": callers * each}


def bulk(order: dict) -> dict:
    jobs, size = order["jobs"], order["size"]
    async_workflow.submit_many([(1,)] * size)
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(0, jobs, size):
        async_workflow.submit_many([(1,)] * size)
    return {
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "jobs": -(-jobs // size) * size,
    }


def fill(order: dict) -> dict:
    jobs = order["jobs"]
    for start in range(0, jobs, 1_000):
        workflow_of(order).submit_many([(order["steps"],)] * min(1_000, jobs - start))
    return {"jobs": jobs}


def work(order: dict) -> dict:
    """Work from the moment a line arrives until the input ends."""
    app.runtime()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    cpu = time.process_time()
    with app.worker(concurrency=order["in_flight"]):
        sys.stdin.read()
        committer = app.runtime().committer
        return {
            "cpu_seconds": time.process_time() - cpu,
            "flushes": committer.flushes,
            "bundles": committer.bundles,
        }


CASES = {
    "async": throughput,
    "sync": throughput,
    "one-async": one_by_one_on_a_loop,
    "one-threads": one_by_one_in_threads,
    "bulk": bulk,
    "fill": fill,
    "work": work,
}


def main() -> None:
    order = json.loads(sys.argv[1])
    app.bind(order["dsn"])
    answer = CASES[order["case"]](order)
    app.close()
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
