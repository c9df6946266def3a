"""The verbs that read before they write: the name of their crash points, and how each is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallystick.store.api import (
    Await,
    CancelJob,
    Cycle,
    Deliver,
    Outcome,
    Primitive,
    PruneJobs,
    Spawn,
    TakeAnswer,
)
from tallystick.store.cancels import cancel_job, cycle
from tallystick.store.control import CONTROL
from tallystick.store.groups import spawn
from tallystick.store.pruning import prune
from tallystick.store.waits import await_message, deliver, take_answer
from tallystick.store.writing import Writing

VERBS: Final[dict[type[Primitive], tuple[str, Callable[[Writing, Any], Outcome]]]] = {
    Await: ("await", await_message),
    TakeAnswer: ("take", take_answer),
    Spawn: ("spawn", spawn),
    Cycle: ("cycle", cycle),
    CancelJob: ("cancel", cancel_job),
    Deliver: ("deliver", deliver),
    PruneJobs: ("prune", prune),
    **CONTROL,
}
