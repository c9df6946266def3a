"""What a decision about remote steps may look at: the job, its steps, the directive that is not out yet.

A protocol job is all remote steps; of a workflow a decision looks at one of them.

Plain values: no store, no clock. Instants are milliseconds by the clock of the store. In every open state of
a step `lease_expires_at` is the instant at which the sweep acts: one column and one index find what is due.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tallystick.core.lifecycles import STEP, OutboxState, StepState
from tallystick.core.pictures import Place
from tallystick.core.tuples import tuned

PULL: Final = "pull"
"""How a directive travels when remote workers ask for it: nothing goes out by itself."""

IN_FLIGHT: Final = frozenset({StepState.DISPATCHING, StepState.AWAITING_ACK, StepState.IN_PROGRESS})
"""States in which a remote worker may have a directive of the step."""


@tuned
class ProtocolJob(NamedTuple):
    """The columns of a protocol job that decisions read or change."""

    job_id: str
    tenant_id: str
    state: str
    rev: int
    semaphore: int
    root_ledger: int
    start_ledger: int
    protocol_id: str
    mode: str | None
    doc_id: str | None
    input_ref: str | None
    output_ref: str | None
    payload: str
    options: str
    current_step_id: str | None
    current_step_index: int | None
    attempts_total: int
    correlation_id: str | None
    traceparent: str | None
    completed_at: int | None
    result: str | None = None
    error: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    # Why nothing new goes out for it; its facts are those of every hold.
    hold: str | None = None


@tuned
class ProtocolStep(NamedTuple):
    """One remote step; `answers` remembers the RESULT of each attempt that had one."""

    job_id: str
    step_id: str
    step_index: int
    step_type: str
    service: str
    state: str
    ledger: int
    rev: int
    payload: str | None
    attempt_no: int = 0
    lease_id: str | None = None
    lease_expires_at: int | None = None
    acked_at: int | None = None
    answers: str | None = None
    input_ref: str | None = None
    workspace_ref: str | None = None
    output_ref: str | None = None
    resolved_mode: str | None = None
    lane: str | None = None
    routing_key_used: str | None = None
    decision_source: str | None = None
    decision_reason: str | None = None
    last_error_code: str | None = None
    last_error_message: str | None = None
    result: str | None = None
    error: str | None = None
    notes: str | None = None
    completed_at: int | None = None
    # Of a step in a workflow: the rules that it was declared with.
    options: str | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether it has not ended."""
        return StepState(self.state) not in STEP.final

    @property
    def is_in_flight(self) -> bool:
        """Tell whether a remote worker may report on it; how it ended may be known and not yet taken."""
        return StepState(self.state) in IN_FLIGHT and self.lease_expires_at is not None

    def is_due(self, now: int) -> bool:
        """Tell whether its time is over; at the very instant it is."""
        return self.lease_expires_at is not None and self.lease_expires_at <= now


@tuned
class OutboxRow(NamedTuple):
    """One directive on its way; its identifier follows from its step and attempt: there is one for each."""

    outbox_id: str
    tenant_id: str
    job_id: str
    step_id: str
    attempt_no: int
    lease_id: str
    state: str
    topic: str
    partition: str
    payload: str
    resolved_mode: str
    lane: str
    routing_key_used: str
    decision_source: str
    decision_reason: str
    tries: int
    next_try_at: int
    created_at: int
    sent_at: int | None
    rev: int
    service: str
    via: str
    taken_by: str | None = None
    reason: str | None = None

    @property
    def is_pulled(self) -> bool:
        """Tell whether remote workers ask for it."""
        return self.via == PULL

    def for_tenants(self) -> OutboxRow:
        """Return it without what only operators are to read: where its service is, and what was met there."""
        if self.is_pulled:
            return self
        reason = self.reason if self.reason in (None, WITHDRAWN) else "its service could not be given it"
        return self._replace(via=_way(self.via), reason=reason)


def _way(via: str) -> str:
    """Return the way of an address alone."""
    return via.partition(" ")[0]


class OutboxLag(NamedTuple):
    """How late the outbox is for one service: what is not out, since when it could be, and what is dead."""

    service: str
    via: str
    waiting: int
    since: int | None
    dead: int

    def for_tenants(self) -> OutboxLag:
        """Return it without where the service is."""
        return self._replace(via=_way(self.via))


class ProtocolPicture(NamedTuple):
    """One protocol job as a decision sees it; `pending` is its directive that is not out, if there is one."""

    job: ProtocolJob
    steps: tuple[ProtocolStep, ...]
    pending: OutboxRow | None = None
    # Whether this is one step of a workflow.
    in_workflow: bool = False

    @property
    def rules(self) -> str:
        """Return where the rules are kept: with a protocol job, or with the step of a workflow."""
        return (self.steps[0].options or "{}") if self.in_workflow else self.job.options

    @property
    def is_held(self) -> bool:
        """Tell whether nothing new goes out until the job is resumed; what is out may end."""
        return self.job.hold is not None

    @property
    def active(self) -> ProtocolStep | None:
        """Return the step that is worked on: the lowest one that has not ended."""
        return next(self.open_steps(), None)

    def open_steps(self) -> Iterator[ProtocolStep]:
        """Yield the steps that have not ended, the lowest first."""
        return (step for step in self.steps if step.is_open)

    def step(self, step_id: str) -> ProtocolStep | None:
        """Return the step of that name."""
        return next((step for step in self.steps if step.step_id == step_id), None)


def outbox_id(job_id: str, step_id: str, attempt_no: int) -> str:
    """Return the identifier of the directive of an attempt: there is one at most.

    >>> outbox_id("j1", "ocr", 2)
    'j1:ocr:2'
    """
    return f"{job_id}:{step_id}:{attempt_no}"


def result_guid(job_id: str, step_id: str, attempt_no: int) -> str:
    """Return the identifier of the message that ends a remote step; it is the same from every sender.

    >>> result_guid("j1", "ocr", 2), result_guid("j1", "3/pick#1", 2)
    ('result:j1:0:ocr:2', 'result:j1:3:pick#1:2')
    """
    dimension, _, name = step_id.rpartition("/")
    return f"result:{job_id}:{dimension or 0}:{name}:{attempt_no}"


def step_id_of(place: Place) -> str:
    """Return how remote workers name a step of a workflow; no step of a protocol has such a name.

    >>> step_id_of((3, "pick", 1)), place_of_step("3/pick#1"), place_of_step("ocr")
    ('3/pick#1', (3, 'pick', 1), None)
    """
    dimension, name, occurrence = place
    return f"{dimension}/{name}#{occurrence}"


def place_of_step(step_id: str) -> Place | None:
    """Return where the step of a workflow stands that has this name; None for a step of a protocol."""
    dimension, slash, rest = step_id.partition("/")
    name, mark, occurrence = rest.rpartition("#")
    if not (slash and mark and dimension.isdecimal() and occurrence.isdecimal()):
        return None
    return (int(dimension), name, int(occurrence))


PENDING: Final = OutboxState.PENDING
WITHDRAWN: Final = "withdrawn"
"""Why a directive never went that was taken back: its job has ended, or its turn."""
