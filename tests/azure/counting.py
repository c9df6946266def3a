"""How many requests a job costs, verb by verb: the bill."""

from __future__ import annotations

from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import AckStep, AnswerStep, DeliverDirective, MarkSent
from tallystick.testing.conformance.protocol_runs import OK, PULLED, PUSHED, RunningProtocol
from tests.azure.worlds import ModelSubject

WAYS = {"pushed": PUSHED, "pulled": PULLED}
WORK_MS = 5_000
"""How long a remote worker takes for a step; the reports that begin it come at once."""


def requests_of(steps: int, policy: Policy, *, one_process: bool) -> list[tuple[str, int]]:
    """Return how many requests each verb of a job makes that goes well, in their order."""
    subject = ModelSubject()
    client, counted = subject.client, list[tuple[str, int]]()
    run = RunningProtocol(subject, steps, policy)
    counted.append(("submit", client.requests))
    for number in range(steps):
        fence = run.fence
        worker = f"w{number}"  # a service of its own for each step
        out = MarkSent(fence) if policy is PUSHED else DeliverDirective(run.job_id, f"s{number}", 1, worker)
        verbs = {
            "out": out,
            "ack": AckStep(fence),
            "result": AnswerStep(fence, OK, f"lease{number}", policy is PUSHED),
        }
        for name, request in verbs.items():
            subject.clock.advance(WORK_MS if name == "result" else 0)
            if not one_process:
                subject.store._remembered.forget(run.job_id)
            before = client.requests
            run.apply(request)
            counted.append((name, client.requests - before))
    return counted


def total(counted: list[tuple[str, int]]) -> int:
    return sum(requests for _verb, requests in counted)
