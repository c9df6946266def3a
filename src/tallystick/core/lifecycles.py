"""The lifecycles, each declared once, each a page to hold against its specification.

`added=` marks an edge that a specification describes without listing it, or lacks; the text names the
decision record that explains it.
"""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from typing import Final, cast

from tallystick.core.machine import Machine, Need, Path, Transition, each, edges

EXITS: Final = "ADR-0003"
REMOTE: Final = "ADR-0111"


class SlotState(IntEnum):
    """Where one seq of a Sequence stands; the codes are the bytes in its array."""

    UNSEEN = 0
    DISPATCHED = 1
    IN_FLIGHT = 2
    TERMINAL_SUCCESS = 3
    TERMINAL_SKIP = 4
    TERMINAL_FAIL = 5
    TERMINAL_CANCEL = 6
    COMMITTED = 7


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "QUEUED"
    DISPATCHING = "DISPATCHING"
    IN_PROGRESS = "IN_PROGRESS"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class StepState(StrEnum):
    """Where a step stands."""

    PENDING = "PENDING"
    DISPATCHING = "DISPATCHING"
    AWAITING_ACK = "AWAITING_ACK"
    IN_PROGRESS = "IN_PROGRESS"
    FAILED_RETRY = "FAILED_RETRY"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class OutboxState(StrEnum):
    """Whether a directive is out."""

    PENDING = "PENDING"
    SENT = "SENT"
    FAILED_FINAL = "FAILED_FINAL"


class AttemptState(StrEnum):
    """How far one attempt got; COMMITTED is the boundary at which effects become allowed."""

    LEASED = "LEASED"
    IN_PROGRESS = "IN_PROGRESS"
    COMMITTED = "COMMITTED"
    DONE = "DONE"
    ABORTED = "ABORTED"


class RunState(StrEnum):
    """The states of the shipped pipeline."""

    CREATED = "CREATED"
    CLONED_INPUTS = "CLONED_INPUTS"
    INGESTED = "INGESTED"
    FACTS_READY = "FACTS_READY"
    PLAN_READY = "PLAN_READY"
    DRAFTING = "DRAFTING"
    DRAFT_READY = "DRAFT_READY"
    LINKING = "LINKING"
    VALIDATING = "VALIDATING"
    FIXING = "FIXING"
    READY_FOR_PR = "READY_FOR_PR"
    PR_OPENED = "PR_OPENED"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


SLOT: Final = Machine(
    name="slot",
    about="one seq of a Sequence: dense, leased, committed in order",
    start=SlotState.UNSEEN,
    final=frozenset({SlotState.COMMITTED}),
    transitions=(
        Transition(SlotState.UNSEEN, "dispatch", SlotState.DISPATCHED),
        Transition(SlotState.DISPATCHED, "start", SlotState.IN_FLIGHT, (Need.LEASE,)),
        Transition(SlotState.IN_FLIGHT, "succeed", SlotState.TERMINAL_SUCCESS, (Need.LEASE,)),
        Transition(SlotState.IN_FLIGHT, "skip", SlotState.TERMINAL_SKIP, (Need.LEASE,)),
        Transition(SlotState.IN_FLIGHT, "fail", SlotState.TERMINAL_FAIL),
        Transition(SlotState.DISPATCHED, "cancel", SlotState.TERMINAL_CANCEL),
        Transition(SlotState.IN_FLIGHT, "cancel", SlotState.TERMINAL_CANCEL),
        Transition(SlotState.TERMINAL_SUCCESS, "commit", SlotState.COMMITTED),
        Transition(SlotState.TERMINAL_SKIP, "commit", SlotState.COMMITTED),
        Transition(SlotState.TERMINAL_FAIL, "commit", SlotState.COMMITTED),
        Transition(SlotState.TERMINAL_CANCEL, "commit", SlotState.COMMITTED),
        Transition(
            SlotState.TERMINAL_FAIL, "retry", SlotState.DISPATCHED, (Need.RETRYABLE, Need.BUDGET_LEFT)
        ),
    ),
)

JOB: Final = Machine(
    name="job",
    about="one submission, from the queue to its result",
    start=JobState.QUEUED,
    final=frozenset({JobState.SUCCEEDED, JobState.FAILED_FINAL, JobState.CANCELLED}),
    transitions=(
        Transition(JobState.QUEUED, "dispatch", JobState.DISPATCHING, (Need.REVISION, Need.ACTIVE_STEP)),
        Transition(
            JobState.DISPATCHING, "start", JobState.IN_PROGRESS, (Need.REVISION, Need.MATCHING_ATTEMPT)
        ),
        Transition(JobState.IN_PROGRESS, "advance", JobState.IN_PROGRESS, (Need.REVISION, Need.ACTIVE_STEP)),
        Transition(
            JobState.IN_PROGRESS, "succeed", JobState.SUCCEEDED, (Need.REVISION, Need.ALL_STEPS_FINAL)
        ),
        Transition(JobState.IN_PROGRESS, "fail", JobState.FAILED_FINAL, (Need.REVISION,)),
        Transition(JobState.DISPATCHING, "fail", JobState.FAILED_FINAL, (Need.REVISION,), EXITS),
        *each(
            (JobState.QUEUED, JobState.DISPATCHING, JobState.IN_PROGRESS),
            "cancel",
            JobState.CANCELLING,
            (Need.REVISION,),
        ),
        Transition(JobState.CANCELLING, "settle", JobState.CANCELLED, (Need.REVISION, Need.ALL_STEPS_FINAL)),
    ),
    paths=(
        Path(JobState.QUEUED, ("dispatch", "start"), "a worker claims a workflow and runs it at once"),
        Path(JobState.QUEUED, ("dispatch", "fail"), "the deadline passed before a worker began"),
        Path(JobState.QUEUED, ("dispatch", "start"), "submitted and claimed in one bundle", born=True),
        Path(JobState.QUEUED, ("dispatch",), "a protocol job is born with its first directive", born=True),
        Path(JobState.DISPATCHING, ("start", "succeed"), "the RESULT of its only step came before any ACK"),
        *(
            Path(state, ("cancel", "settle"), "cancelled with nothing in flight")
            for state in (JobState.QUEUED, JobState.DISPATCHING, JobState.IN_PROGRESS)
        ),
    ),
)

_OPEN_STEPS = (
    StepState.PENDING,
    StepState.DISPATCHING,
    StepState.AWAITING_ACK,
    StepState.IN_PROGRESS,
    StepState.FAILED_RETRY,
)

# What runs in the worker itself is handed over, acknowledged and begun in the same breath.
_IN_PROCESS = ("dispatch", "sent", "ack")

STEP: Final = Machine(
    name="step",
    about="one unit of work inside a job",
    start=StepState.PENDING,
    final=frozenset({StepState.SUCCEEDED, StepState.FAILED_FINAL, StepState.CANCELLED}),
    transitions=(
        Transition(StepState.PENDING, "dispatch", StepState.DISPATCHING, (Need.REVISION,)),
        Transition(
            StepState.DISPATCHING, "sent", StepState.AWAITING_ACK, (Need.MATCHING_ATTEMPT, Need.PUBLISHED)
        ),
        Transition(StepState.AWAITING_ACK, "ack", StepState.IN_PROGRESS, (Need.LEASE,)),
        Transition(StepState.IN_PROGRESS, "succeed", StepState.SUCCEEDED, (Need.LEASE,)),
        Transition(StepState.IN_PROGRESS, "fail", StepState.FAILED_FINAL, (Need.LEASE,)),
        Transition(
            StepState.IN_PROGRESS,
            "fail_retryably",
            StepState.FAILED_RETRY,
            (Need.LEASE, Need.RETRYABLE, Need.BUDGET_LEFT),
        ),
        Transition(
            StepState.AWAITING_ACK, "ack_timeout", StepState.FAILED_RETRY, (Need.LEASE_GONE, Need.BUDGET_LEFT)
        ),
        Transition(
            StepState.IN_PROGRESS,
            "lease_timeout",
            StepState.FAILED_RETRY,
            (Need.LEASE_GONE, Need.BUDGET_LEFT),
            EXITS,
        ),
        Transition(StepState.FAILED_RETRY, "redispatch", StepState.DISPATCHING, (Need.REVISION,)),
        Transition(StepState.DISPATCHING, "give_up", StepState.FAILED_FINAL, (Need.MATCHING_ATTEMPT,), EXITS),
        *each(
            (StepState.AWAITING_ACK, StepState.IN_PROGRESS),
            "exhaust",
            StepState.FAILED_FINAL,
            (Need.LEASE_GONE, Need.BUDGET_SPENT),
            EXITS,
        ),
        *each(_OPEN_STEPS, "cancel", StepState.CANCELLED, (Need.REVISION, Need.CANCELLING)),
        Transition(StepState.IN_PROGRESS, "drop", StepState.CANCELLED, (Need.REVISION,), EXITS),
        Transition(StepState.PENDING, "drop", StepState.CANCELLED, (Need.REVISION,), REMOTE),
    ),
    paths=(
        Path(
            StepState.PENDING, (*_IN_PROCESS, "succeed"), "an inline step: its row is its result", born=True
        ),
        Path(StepState.PENDING, (*_IN_PROCESS, "fail"), "an inline step that failed for good", born=True),
        Path(StepState.PENDING, _IN_PROCESS, "a wait, a sleep, a group or an intent opens", born=True),
        Path(StepState.PENDING, ("dispatch",), "a remote step opens with its directive", born=True),
        Path(StepState.DISPATCHING, ("sent", "ack"), "the ACK came before SENT was written"),
        *(
            Path(StepState.AWAITING_ACK, ("ack", end), "the RESULT came before its ACK")
            for end in ("succeed", "fail", "fail_retryably")
        ),
        *(
            Path(StepState.DISPATCHING, ("sent", "ack", end), "the RESULT came before SENT was written")
            for end in ("succeed", "fail", "fail_retryably")
        ),
    ),
)

OUTBOX: Final = Machine(
    name="outbox",
    about="one directive on its way to a remote worker",
    start=OutboxState.PENDING,
    final=frozenset({OutboxState.SENT, OutboxState.FAILED_FINAL}),
    transitions=(
        Transition(OutboxState.PENDING, "publish", OutboxState.SENT, (Need.REVISION, Need.PUBLISHED)),
        Transition(
            OutboxState.PENDING, "give_up", OutboxState.FAILED_FINAL, (Need.REVISION, Need.BUDGET_SPENT)
        ),
        Transition(OutboxState.PENDING, "withdraw", OutboxState.FAILED_FINAL, (Need.REVISION,), REMOTE),
    ),
)

ATTEMPT: Final = Machine(
    name="attempt",
    about="one leased try at a unit of work; the source of truth about it",
    start=AttemptState.LEASED,
    final=frozenset({AttemptState.DONE, AttemptState.ABORTED}),
    transitions=(
        Transition(AttemptState.LEASED, "start", AttemptState.IN_PROGRESS, (Need.LEASE,)),
        Transition(
            AttemptState.IN_PROGRESS, "commit", AttemptState.COMMITTED, (Need.LEASE, Need.NO_OTHER_COMMIT)
        ),
        Transition(AttemptState.COMMITTED, "finish", AttemptState.DONE),
        Transition(AttemptState.LEASED, "abort", AttemptState.ABORTED),
        Transition(AttemptState.IN_PROGRESS, "abort", AttemptState.ABORTED),
    ),
    paths=(
        Path(AttemptState.LEASED, ("start",), "a claim leases and starts in one bundle", born=True),
        Path(AttemptState.LEASED, ("abort",), "cancelled with no attempt to abort", born=True),
        Path(AttemptState.LEASED, ("start", "commit"), "an effect's intent is its commit", born=True),
        Path(AttemptState.IN_PROGRESS, ("commit", "finish"), "result and completion tasks in one bundle"),
    ),
)

_RUN_ENDS = (RunState.FAILED, RunState.CANCELLED)

RUN: Final = Machine(
    name="run",
    about="the shipped pipeline, whose folder is the source of truth",
    start=RunState.CREATED,
    final=frozenset({RunState.DONE, *_RUN_ENDS}),
    transitions=edges(
        {
            RunState.CREATED: (RunState.CLONED_INPUTS, *_RUN_ENDS),
            RunState.CLONED_INPUTS: (RunState.INGESTED, *_RUN_ENDS),
            RunState.INGESTED: (RunState.FACTS_READY, *_RUN_ENDS),
            RunState.FACTS_READY: (RunState.PLAN_READY, *_RUN_ENDS),
            RunState.PLAN_READY: (RunState.DRAFTING, *_RUN_ENDS),
            RunState.DRAFTING: (RunState.DRAFT_READY, *_RUN_ENDS),
            RunState.DRAFT_READY: (RunState.LINKING, *_RUN_ENDS),
            RunState.LINKING: (RunState.VALIDATING, *_RUN_ENDS),
            RunState.VALIDATING: (RunState.READY_FOR_PR, RunState.FIXING, *_RUN_ENDS),
            RunState.FIXING: (RunState.VALIDATING, *_RUN_ENDS),
            RunState.READY_FOR_PR: (RunState.PR_OPENED, *_RUN_ENDS),
            RunState.PR_OPENED: (RunState.DONE, *_RUN_ENDS),
        }
    ),
)

# A rewind is a recorded fact of a resume, not a move of the machine: it has no trigger.
RUN_STABLE: Final = frozenset({RunState.PLAN_READY, RunState.DRAFT_READY, RunState.READY_FOR_PR})
RUN_REWINDS: Final = {
    RunState.DRAFTING: RunState.PLAN_READY,
    RunState.LINKING: RunState.DRAFT_READY,
    RunState.VALIDATING: RunState.DRAFT_READY,
    RunState.FIXING: RunState.DRAFT_READY,
}

MACHINES: Final[dict[str, Machine[Enum]]] = {
    machine.name: cast("Machine[Enum]", machine) for machine in (SLOT, JOB, STEP, OUTBOX, ATTEMPT, RUN)
}

__all__ = [
    "ATTEMPT",
    "JOB",
    "MACHINES",
    "OUTBOX",
    "RUN",
    "RUN_REWINDS",
    "RUN_STABLE",
    "SLOT",
    "STEP",
    "AttemptState",
    "JobState",
    "OutboxState",
    "RunState",
    "SlotState",
    "StepState",
]
