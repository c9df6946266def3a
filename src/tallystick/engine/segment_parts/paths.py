"""What the facts of a segment say about the lifecycles that they move, as those declare it."""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState

_RUNS: Final = JobState.IN_PROGRESS

ABORTED: Final = ATTEMPT.follow(AttemptState.IN_PROGRESS, "abort").path
RETURNED: Final[dict[str, object]] = {
    "job": JOB.follow(_RUNS, "succeed").path,
    "attempt": ATTEMPT.follow(AttemptState.IN_PROGRESS, "commit", "finish").path,
}
FAILED: Final = {"job": JOB.follow(_RUNS, "fail").path, "attempt": ABORTED}
CANCELLED: Final = {"job": JOB.follow(_RUNS, "cancel", "settle").path, "attempt": ABORTED}
RETURNED_TEXT: Final = msgspec.json.encode(RETURNED).decode()
