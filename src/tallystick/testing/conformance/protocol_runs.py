"""One protocol job on a store under test, and what may be said to it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tallystick.core.remote.commands import as_job
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    ExpireStep,
    MarkSent,
    ProtocolRequest,
    StepAnswer,
    StepFence,
    SubmitCommand,
)
from tallystick.core.remote.rows import ProtocolPicture
from tallystick.core.remote.wire import Command, ProtocolDefinition, StepDefinition
from tallystick.store.api import Protocols
from tallystick.testing.conformance.drafts import FRESH, check_chain, outcome_of
from tallystick.testing.conformance.pictures import (
    DirectivePicture,
    FactPicture,
    JobPicture,
    MessagePicture,
    Picture,
    ReservationPicture,
    StepPicture,
)
from tallystick.testing.conformance.subject import Subject

PUSHED = Policy(via={"svc": "webhook"})
PULLED = Policy()
TABLES: dict[str, type[Picture]] = {
    "jobs": JobPicture,
    "steps": StepPicture,
    "outbox": DirectivePicture,
    "messages": MessagePicture,
    "events": FactPicture,
    "idempotency": ReservationPicture,
}
OK = StepAnswer(True, "ok", value='{"pages":3}', output_ref="s3://mid")
RETRY = StepAnswer(False, "retry", retryable=True, error_code="BUSY", error_message="later")
FINAL = StepAnswer(False, "final", error_code="BROKEN", error_message="unreadable")


def command(steps: int, policy: Policy = PUSHED, **members: str) -> SubmitCommand:
    """Return a command for a protocol of so many steps."""
    declared = [StepDefinition(f"s{n}", "svc") for n in range(steps)]
    protocol = ProtocolDefinition("p", ["t"], declared)
    said = Command("acme", "t", "s3://in", "s3://out", {"n": FRESH.new()}, "v1", **members)  # type: ignore[arg-type]  # as tests name them
    made = as_job(said, protocol, policy, job_id=FRESH.new(), lease_id=FRESH.new())
    return made._replace(relays=True)


class RunningProtocol:
    """One protocol job on a store, and what may be said to it."""

    def __init__(self, subject: Subject, steps: int = 1, policy: Policy = PUSHED, **members: str) -> None:
        """Submit it."""
        self.subject = subject
        self.request = command(steps, policy, **members)
        self.job_id = self.request.job_id
        assert self.apply(self.request).heard is Heard.CREATED

    def apply(self, request: SubmitCommand | ProtocolRequest) -> Hearing:
        """Apply one request."""
        outcome = outcome_of(self.subject.store, request)
        assert isinstance(outcome, Hearing), outcome
        return outcome

    @property
    def picture(self) -> ProtocolPicture:
        """Return its rows."""
        picture = cast("Protocols", self.subject.store).protocol(self.job_id)
        assert picture is not None
        return picture

    @property
    def fence(self) -> StepFence:
        """Return what the active step's worker has."""
        step = self.picture.active
        assert step is not None
        return StepFence(self.job_id, step.step_id, step.attempt_no, step.lease_id or "")

    def publish(self) -> Hearing:
        """Note that the directive is out."""
        return self.apply(MarkSent(self.fence))

    def ack(self, fence: StepFence | None = None) -> Hearing:
        """Acknowledge."""
        return self.apply(AckStep(fence or self.fence))

    def answer(self, answer: StepAnswer = OK, fence: StepFence | None = None) -> Hearing:
        """Send a RESULT."""
        return self.apply(AnswerStep(fence or self.fence, answer, FRESH.new(), relays=True))

    def expire(self) -> Hearing:
        """Act as the sweep."""
        return self.apply(ExpireStep(self.job_id, FRESH.new(), relays=True))

    def again(self) -> None:
        """Let the wait for the next attempt pass, and dispatch it."""
        step = self.picture.active
        assert step is not None
        assert step.lease_expires_at is not None
        self.until(step.lease_expires_at)
        assert self.expire().heard is Heard.DONE

    def until(self, instant: int) -> None:
        """Let the clock come to an instant."""
        clock = self.subject.clock
        clock.advance(instant - clock.wall_ms())

    def states(self) -> tuple[str, list[str]]:
        """Return where job and steps stand."""
        return self.picture.job.state, [step.state for step in self.picture.steps]

    def images(self) -> dict[str, list[dict[str, Any]]]:
        """Return all that is durable of it, by table."""
        books = self.subject.books(self.job_id)
        return {table: [dict(row) for row in books[kind]] for table, kind in TABLES.items()}

    def same(self, request: ProtocolRequest, heard: Heard) -> None:
        """Apply a request that must be answered so and change nothing."""
        before = self.images()
        assert self.apply(request).heard is heard
        assert self.images() == before

    def check(self) -> None:
        """Check what holds after every commit."""
        picture = self.picture
        open_steps = [step for step in picture.steps if step.is_open]
        assert picture.job.semaphore == len(open_steps)
        active = picture.active
        assert (picture.pending is not None) == (active is not None and active.state == "DISPATCHING")
        assert (picture.job.completed_at is None) == bool(open_steps)
        check_chain(self.subject.store.history(self.job_id))


EACH_WAY = pytest.mark.parametrize("policy", [PUSHED, PULLED], ids=["pushed", "pulled"])
