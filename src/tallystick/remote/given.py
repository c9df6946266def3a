"""What a handler of a remote worker gets, and what it may give back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from tallystick.core.remote.refs import AnyRef
from tallystick.core.remote.requests import StepFence
from tallystick.core.remote.wire import Directive


class RemoteFailed(Exception):
    """Raise this in a handler to say how the work failed; by default trying again cannot help."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        retryable: bool = False,
        details: dict[str, object] | None = None,
    ) -> None:
        """Give the failure a code of yours; it becomes `error_code` of the job."""
        super().__init__(message or code)
        self.code = code
        self.message = message or code
        self.retryable = retryable
        self.details = details


@dataclass(frozen=True, slots=True)
class Done:
    """What a handler returns that has more to say than a value."""

    value: Any = None
    _: KW_ONLY
    output_ref: AnyRef | None = None
    workspace_ref: AnyRef | None = None
    artifact_refs: Sequence[AnyRef] | None = None


class GivenDirective:
    """A directive that this worker has: what to do, and whether it is still wanted."""

    def __init__(self, form: Directive) -> None:
        """Begin with the token of the directive; each answer may bring a fresh one."""
        self.form = form
        self.token = form.token or ""
        self.lease_ms: int | None = None
        # Whether it has ended here: what was to be said before that is said by the RESULT.
        self.reported = False
        self._cancelled = threading.Event()

    def __repr__(self) -> str:
        return f"<GivenDirective {self.form.outbox_id}>"

    @property
    def cancelled(self) -> bool:
        """Tell whether the work is no longer wanted: the job is to end, or the lease is lost."""
        return self._cancelled.is_set()

    def wait_cancelled(self, seconds: float) -> bool:
        """Wait until the work is no longer wanted, and tell whether it is so."""
        return self._cancelled.wait(seconds)

    def cancel(self) -> None:
        """Note that the work is no longer wanted."""
        self._cancelled.set()

    @property
    def outbox_id(self) -> str:
        """Return what is the same for every copy of this directive."""
        return self.form.outbox_id

    @property
    def job_id(self) -> str:
        """Return the job."""
        return self.form.job_id

    @property
    def step_id(self) -> str:
        """Return the step."""
        return self.form.step_id

    @property
    def step_type(self) -> str:
        """Return what kind of work it is: that of its protocol, or the name of the step."""
        return self.form.step_type

    @property
    def correlation_id(self) -> str | None:
        """Return what the sender of the command knows the job by, if that was said."""
        return self.form.correlation_id

    @property
    def traceparent(self) -> str | None:
        """Return the span that the job was submitted in, for a span of the work below it."""
        return self.form.traceparent

    @property
    def tenant_id(self) -> str:
        """Return whose job it is."""
        return self.form.tenant_id

    @property
    def attempt_no(self) -> int:
        """Return which attempt at the step this is, from 1 on."""
        return self.form.attempt_no

    @property
    def payload(self) -> Any:  # noqa: ANN401 (as the command has it)
        """Return what to do."""
        return self.form.payload

    @property
    def input_ref(self) -> AnyRef | None:
        """Return where the input is."""
        return self.form.input_ref

    @property
    def workspace_ref(self) -> AnyRef | None:
        """Return where the steps of the job may keep what is between them."""
        return self.form.workspace_ref

    @property
    def output_ref(self) -> AnyRef | None:
        """Return where the output of the job belongs."""
        return self.form.output_ref

    @property
    def fence(self) -> StepFence:
        """Return what a report on it is accepted by."""
        return StepFence(self.form.job_id, self.form.step_id, self.form.attempt_no, self.form.lease_id)
