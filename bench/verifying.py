"""Verify's rate: a store full of 1-step jobs, checked from end to end by `tally verify`'s own function.

The figure is of the processor: the process works alone, and a check that reads a file that is in memory waits
for nothing. Beside it stands the time that went by.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from bench.kernel import compared
from bench.our_workflows import app, sync_workflow
from tallystick.engine.audit.whole_store import verify

GOAL_PER_MINUTE = 100_000
IN_FLIGHT = 64


def main(*, quick: bool, rounds: int | None = None) -> list[dict]:
    jobs = 3_000 if quick else 100_000
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        app.bind(f"sqlite:///{folder}/books.db")
        try:
            fill(jobs)
            rates = [measured(number) for number in range(rounds or (1 if quick else 3))]
        finally:
            app.close()
    rate = statistics.median(rates)
    row = compared(f"verify, {jobs:,} jobs, per minute of CPU", rate, None, None, "jobs")
    return [row | {"goal": f">= {GOAL_PER_MINUTE:,}", "met": rate >= GOAL_PER_MINUTE}]


def fill(jobs: int) -> None:
    """Run so many jobs to their ends."""
    with app.worker(concurrency=IN_FLIGHT):
        for start in range(0, jobs, 1_000):
            for job in sync_workflow.submit_many([(1,)] * min(1_000, jobs - start)):
                job.result(timeout=120)


def measured(number: int) -> float:
    """Check all books once, and return how many jobs that are per minute of CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    found = verify(app.runtime().store)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert not found.findings_total, found.findings
    rate = found.jobs * 60 / cpu
    each = f"{cpu * 1_000_000 / found.jobs:.0f} us of CPU per job"
    print(f"  round {number + 1}  {rate:,.0f} jobs per minute of CPU ({each}); {seconds:.1f} s", flush=True)
    return rate
