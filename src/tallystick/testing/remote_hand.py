"""A remote worker that moves only when your test tells it to: it asks the store itself, without HTTP.

remote = RemoteHand(app, "warehouse")
job = order.submit(7)
worker.work()  # a `SteppedWorker`: the workflow asks for its remote step and is put away
directive = remote.take()
directive.succeed({"parcels": 2})
worker.work()  # the workflow goes on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tallystick.app.api.tally import Tally
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    DeliverDirective,
    RenewStep,
    StepFence,
    StepRequest,
)
from tallystick.core.remote.rows import OutboxRow
from tallystick.core.remote.wire import RemoteError, ResultReport
from tallystick.engine.sweep import expire_steps
from tallystick.store.api import Protocols

__all__ = ["Heard", "HeldDirective", "RemoteHand", "expire_remote"]


def expire_remote(app: Tally) -> int:
    """Do what the sweep does with remote steps whose time is over, and return how many these were."""
    runtime = app.runtime()
    assert isinstance(runtime.store, Protocols), "both SQL stores keep remote steps"
    return len(expire_steps(runtime.store, runtime.committer, runtime.ids))


@dataclass(frozen=True)
class HeldDirective:
    """A directive that a remote worker has; every report on it says what became of it."""

    app: Tally
    row: OutboxRow

    @property
    def fence(self) -> StepFence:
        """Return what reports on it are accepted by."""
        return StepFence(self.row.job_id, self.row.step_id, self.row.attempt_no, self.row.lease_id)

    @property
    def payload(self) -> Any:  # noqa: ANN401 (what the workflow has given)
        """Return the arguments of the step."""
        return msgspec.json.decode(self.row.payload)["payload"]

    def ack(self) -> Heard:
        """Say that the work has begun."""
        return self.say(AckStep(self.fence)).heard

    def beat(self) -> Hearing:
        """Say that the work goes on."""
        return self.say(RenewStep(self.fence))

    def succeed(self, value: object = None, *, workspace: str | None = None) -> Heard:
        """Say that the work is done, and where it has left something, if it has."""
        return self.answer(
            ResultReport(*self.fence, status="SUCCEEDED", value=value, workspace_ref=workspace)
        )

    def fail(self, code: str, message: str = "", *, again: bool = False, **details: object) -> Heard:
        """Say that the work has failed, for good or to be tried `again`."""
        return self.answer(
            ResultReport(
                *self.fence,
                status="FAILED",
                failure_class="RETRYABLE" if again else "NON_RETRYABLE",
                error=RemoteError(code, message, details or None),
            )
        )

    def answer(self, result: ResultReport) -> Heard:
        """Send a RESULT."""
        return self.say(AnswerStep(self.fence, result.answer(), self.app.runtime().ids.token())).heard

    def say(self, request: StepRequest) -> Hearing:
        """Send a request to the store."""
        heard = self.app.runtime().committer.call((request,))
        assert isinstance(heard, Hearing), heard
        return heard


class RemoteHand:
    """A remote worker of some services that takes directives when it is told to."""

    def __init__(self, app: Tally, *services: str, worker: str = "by-hand") -> None:
        """Ask for these services under this name."""
        self.app = app
        self.services = services
        self.worker = worker

    def take(self) -> HeldDirective:
        """Take the oldest directive; there must be one."""
        taken = self.look()
        assert taken is not None, f"there is no directive for {', '.join(self.services)}"
        return taken

    def look(self) -> HeldDirective | None:
        """Take the oldest directive, if there is one."""
        store = self.app.runtime().store
        assert isinstance(store, Protocols), "both SQL stores keep remote steps"
        for row in store.asked_directives(self.services, None, 1):
            request = DeliverDirective(row.job_id, row.step_id, row.attempt_no, self.worker)
            heard = HeldDirective(self.app, row).say(request)
            if heard.directive is not None:
                return HeldDirective(self.app, heard.directive)
        return None
