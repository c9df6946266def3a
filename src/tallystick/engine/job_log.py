"""What the log says about jobs: one record for each that failed, was cancelled, held or taken over.

The logger is `tallystick.job`. The fields of a record (`action`, `job_id`, `workflow`, …) are in its `extra`.
"""

from __future__ import annotations

import logging
from typing import Final

from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.lifecycles import JobState
from tallystick.engine.observe import CancelledHere, JobFinished, JobHeld, Observers, Reclaimed

JOB_LOG: Final = "tallystick.job"

_log = logging.getLogger(JOB_LOG)

_BECAME: Final = {
    Reclaim.FINISH: "its work was committed, and it is finished from there",
    Reclaim.IN_DOUBT: "an effect of it is in doubt",
    Reclaim.RETRY: "another worker goes on with it",
    Reclaim.FAIL: "its attempts are spent, and it failed",
    Reclaim.SETTLE: "it was being cancelled, and is cancelled",
    Reclaim.HOLD: "it is held until a person has looked",
}


def log_jobs(observers: Observers) -> None:
    """Log what people must hear of."""
    observers.on(JobFinished, _ended)
    observers.on(CancelledHere, _cancelled)
    observers.on(JobHeld, _held)
    observers.on(Reclaimed, _reclaimed)


def _ended(end: JobFinished) -> None:
    if end.state == JobState.SUCCEEDED:
        return
    job_id, name = end.fence.job_id, end.handler
    about = {"job_id": job_id, "workflow": name, "code": end.error_code}
    if end.state == JobState.FAILED_FINAL:
        about["action"] = "job.failed"
        why = f"{end.error_code}: {end.error_message}"
        _log.warning("job %s (%s) failed: %s", job_id, name, why, extra=about)
    elif end.state == JobState.CANCELLED:
        _cancelled(CancelledHere(job_id, name, end.error_code))


def _cancelled(end: CancelledHere) -> None:
    job_id, name, code = end
    if _log.isEnabledFor(logging.INFO):
        about = {"action": "job.cancelled", "job_id": job_id, "workflow": name, "code": code}
        named = "" if name is None else f" ({name})"
        why = "" if code is None else f": {code}"
        _log.info("job %s%s was cancelled%s", job_id, named, why, extra=about)


def _held(held: JobHeld) -> None:
    job_id, name = held.fence.job_id, held.handler
    about = {"action": "job.held", "job_id": job_id, "workflow": name, "hold": held.hold}
    _log.warning("job %s (%s) is held (%s): %s", job_id, name, held.hold, held.why, extra=about)


def _reclaimed(taken: Reclaimed) -> None:
    job_id, attempt = taken.fence.job_id, taken.fence.attempt
    about = {"action": "job.reclaimed", "job_id": job_id, "attempt": attempt, "became": taken.became.name}
    _log.warning("%s", reclaimed_words(taken), extra=about)


def reclaimed_words(taken: Reclaimed) -> str:
    """Return what became of the job of a lost worker, for people."""
    job_id, attempt, became = taken.fence.job_id, taken.fence.attempt, _BECAME[taken.became]
    return f"job {job_id}: the lease of attempt {attempt} ran out; {became}"
