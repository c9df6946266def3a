"""Azure Tables on azurite: requests per job by verb, which are the bill, times, and a look among many jobs.

Times on an emulator say little about the service; the counts are the same there.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.kernel import compared
from tallystick.clock import SystemClock, VirtualClock
from tallystick.core.remote.requests import AckStep, AnswerStep, MarkSent, StepFence, SubmitCommand
from tallystick.ids import SystemIds
from tallystick.store.azure.store import AzureStore
from tallystick.testing.azurite_server import start_azurite
from tallystick.testing.conformance.protocol_runs import OK, command

GOALS = {1: 20, 3: 50}
AT_ONCE = 64


def main(*, quick: bool, rounds: int | None = None) -> list[dict]:
    root = Path(__file__).parents[1]
    subprocess.run([root / "scripts" / "azurite"], check=True)
    os.environ.setdefault("TALLYSTICK_AZURITE", str(root / ".tools" / "azurite"))
    azurite = start_azurite()
    os.environ["TALLYSTICK_AZURE_CONNECTION_STRING"] = azurite.connection()
    store = AzureStore(azurite.url(f"b{SystemIds().token()[:12]}"), SystemClock())
    try:
        rows = [billed(store, steps) for steps in GOALS]
        jobs = (2 if quick else 16) * (rounds or 1)
        rows += [row for steps in GOALS for row in timed(store, steps, 10 * jobs, at_once=1)]
        rows += timed(store, 1, AT_ONCE * jobs, at_once=AT_ONCE)
        return [*rows, *looked(store.url, 500 if quick else 10_000)]
    finally:
        store.close()


def billed(store: AzureStore, steps: int) -> dict:
    """Run one job and count what it asked of the service; 10,000 requests cost P."""
    counted = []
    for name, request in life(command(steps)):
        before = store.client.requests
        (outcome,) = store.apply([(request,)])
        assert not isinstance(outcome, BaseException), outcome
        counted.append(f"{name} {store.client.requests - before}")
    total = sum(int(each.split()[-1]) for each in counted)
    print(
        f"  {steps} steps  {total} requests, {total * 100:,} P per million jobs: {', '.join(counted)}",
        flush=True,
    )
    row = compared(f"requests per job of {steps} steps", total, None, None, "requests")
    return row | {"goal": f"<= {GOALS[steps]}", "met": total <= GOALS[steps]}


def life(request: SubmitCommand) -> list[tuple[str, object]]:
    """Return everything that is said to a job that goes well."""
    said: list[tuple[str, object]] = [("submit", request)]
    lease = request.lease_id
    for step in request.steps:
        fence, lease = StepFence(request.job_id, step.step_id, 1, lease), SystemIds().token()
        answer = AnswerStep(fence, OK, lease, relays=True)
        said += [("sent", MarkSent(fence)), ("ack", AckStep(fence)), ("result", answer)]
    return said


def timed(store: AzureStore, steps: int, jobs: int, *, at_once: int) -> list[dict]:
    """Run jobs, some at once, and return how long each took, and how many ended per second."""
    taken: dict[str, list[float]] = defaultdict(list)

    def lived(said: list[tuple[str, object]]) -> float:
        began = time.perf_counter()
        for name, request in said:
            before = time.perf_counter()
            told(store, [request])
            taken[name].append((time.perf_counter() - before) * 1_000)
        return (time.perf_counter() - began) * 1_000

    lives = [life(command(steps)) for _ in range(jobs)]
    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        each = sorted(pool.map(lived, lives))
    rate, most = jobs / (time.perf_counter() - began), each[int(0.95 * len(each))]
    verbs = ", ".join(f"{name} {statistics.median(ms):.0f} ms" for name, ms in taken.items())
    where = "alone" if at_once == 1 else f"{at_once} at once"
    name = f"a job of {steps} steps, {where}, azurite"
    print(
        f"  {name}: {statistics.median(each):.0f} ms, p95 {most:.0f}, {rate:.1f} jobs/s; {verbs}", flush=True
    )
    rows = [compared(name, statistics.median(each), None, None, "ms")]
    return rows if at_once == 1 else [*rows, compared(f"{name}, per second", rate, None, None, "jobs")]


def told(store: AzureStore, requests: Sequence[object]) -> None:
    for outcome in store.apply([(request,) for request in requests]):  # type: ignore[misc]  # each is one bundle
        assert not isinstance(outcome, BaseException), outcome


def looked(url: str, jobs: int) -> list[dict]:
    """Fill the tables with open jobs and count what a look asks for while nothing is due."""
    store = AzureStore(url, VirtualClock())
    for start in range(0, jobs, 500):
        told(store, [command(1) for _ in range(min(500, jobs - start))])
    before, began = store.client.requests, time.perf_counter()
    assert store.due_steps(500) == []
    ms, asked = (time.perf_counter() - began) * 1_000, store.client.requests - before
    print(f"  a look among {jobs:,} open jobs: {asked} requests, {ms:.0f} ms", flush=True)
    store.close()
    row = compared(f"requests of a look among {jobs:,} open jobs", asked, None, None, "requests")
    took = compared(f"a look among {jobs:,} open jobs, azurite", ms, None, None, "ms")
    return [row | {"goal": "<= 16", "met": asked <= 16}, took]
