"""What is decided from pictures, and the names of its crash points."""

from __future__ import annotations

from typing import Final

from tallystick.store.api import (
    Await,
    CancelJob,
    Cycle,
    Deliver,
    EndAttempt,
    EndJob,
    HoldJob,
    Primitive,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    ResumeJob,
    SetValue,
    Spawn,
    TakeAnswer,
)

NAMES: Final[dict[type[Primitive], str]] = {
    Await: "await",
    TakeAnswer: "take",
    Spawn: "spawn",
    Cycle: "cycle",
    CancelJob: "cancel",
    Deliver: "deliver",
    HoldJob: "hold",
    ResumeJob: "resume",
    EndJob: "end_job",
    RecordStep: "step",
    RecordEvent: "event",
    SetValue: "value",
    EndAttempt: "end_attempt",
    ReclaimAttempt: "reclaim",
}
"""Every request that a verb decides. Plain ones are also written in lists, without a look."""
