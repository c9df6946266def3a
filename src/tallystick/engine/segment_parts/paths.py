"""What the facts of a segment say about the lifecycles that they move, as those declare it."""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import ENDED, TURNED, WAS, fingerprint, of_end
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.engine.failure import Failure

_RUNS: Final = JobState.IN_PROGRESS

ABORTED: Final = ATTEMPT.follow(AttemptState.IN_PROGRESS, "abort").path
CANCELLED: Final = {"job": JOB.follow(_RUNS, "cancel", "settle").path, "attempt": ABORTED, ENDED: of_end()}
_FAILED: Final = {"job": JOB.follow(_RUNS, "fail").path, "attempt": ABORTED}
_RETURNED: Final[dict[str, object]] = {
    "job": JOB.follow(_RUNS, "succeed").path,
    "attempt": ATTEMPT.follow(AttemptState.IN_PROGRESS, "commit", "finish").path,
}
_RETURNED_TEXT: Final = msgspec.json.encode(_RETURNED).decode()[:-1]


def returned(result: str) -> tuple[dict[str, object], str]:
    """Return what the fact of a return says, and its text, which is there for speed."""
    ended = of_end(result)
    return {**_RETURNED, ENDED: ended}, f'{_RETURNED_TEXT},"{ENDED}":"{ended}"}}'


def failed(failure: Failure, reason: AbortReason) -> dict[str, object]:
    """Return what the fact of a failure says."""
    ended = of_end(None, *failure.stored())
    return {**_FAILED, "reason": reason.value, "charged": True, "error": failure.summary(), ENDED: ended}


def turned(dimension: int, before: str, payload: str) -> dict[str, object]:
    """Return what the fact of a turn says: the next one, and the arguments of both."""
    return {
        "attempt": ABORTED,
        "dimension": dimension,
        WAS: fingerprint(before),
        TURNED: fingerprint(payload),
    }
