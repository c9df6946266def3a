"""Azure Tables on azurite: requests per job by verb, which are the bill, and a look among many jobs.

Times on an emulator say little about the service; the counts are the same there.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
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
        rows += loaded(store, AT_ONCE * (2 if quick else 16) * (rounds or 1))
        return [*rows, looked(store.url, 500 if quick else 10_000)]
    finally:
        store.close()


def billed(store: AzureStore, steps: int) -> dict:
    """Run one job and count what it asked of the service."""
    counted, began = [], time.perf_counter()
    for name, request in life(command(steps)):
        before = store.client.requests
        (outcome,) = store.apply([(request,)])
        assert not isinstance(outcome, BaseException), outcome
        counted.append(f"{name} {store.client.requests - before}")
    ms = (time.perf_counter() - began) * 1_000
    total = sum(int(each.split()[-1]) for each in counted)
    print(f"  {steps} steps  {total} requests, {ms:.0f} ms alone: {', '.join(counted)}", flush=True)
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


def loaded(store: AzureStore, jobs: int) -> list[dict]:
    """Run many jobs of one step, some at once, and return how many end per second."""
    lives = [life(command(1)) for _ in range(jobs)]
    began = time.perf_counter()
    for start in range(0, jobs, AT_ONCE):
        flight = lives[start : start + AT_ONCE]
        for turn in range(len(flight[0])):
            told(store, [said[turn][1] for said in flight])
    rate = jobs / (time.perf_counter() - began)
    return [compared(f"{jobs:,} jobs of 1 step, {AT_ONCE} at once, azurite", rate, None, None, "jobs")]


def told(store: AzureStore, requests: Sequence[object]) -> None:
    for outcome in store.apply([(request,) for request in requests]):  # type: ignore[misc]  # each is one bundle
        assert not isinstance(outcome, BaseException), outcome


def looked(url: str, jobs: int) -> dict:
    """Fill the tables with open jobs and count what a look asks for while nothing is due."""
    store = AzureStore(url, VirtualClock())
    for start in range(0, jobs, 500):
        told(store, [command(1) for _ in range(min(500, jobs - start))])
    before = store.client.requests
    assert store.due_steps(500) == []
    asked = store.client.requests - before
    store.close()
    row = compared(f"requests of a look among {jobs:,} open jobs", asked, None, None, "requests")
    return row | {"goal": "<= 16", "met": asked <= 16}
