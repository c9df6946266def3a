"""How jobs, their steps and their children end badly, and what is refused on their behalf."""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.errors.root import TallyError


class StepFailed(TallyError):
    """A step failed for good."""

    code = "STEP_FAILED"

    def __init__(self, step: str, kind: str, message: str, code: str, tries: int) -> None:
        """Say which step failed, with what and after how many tries; `type` is that of the error."""
        self.step = step
        self.type = kind
        self.error_code = code
        self.tries = tries
        count = "1 try" if tries == 1 else f"{tries} tries"
        super().__init__(
            f"{step} failed after {count}: {kind}: {message}",
            step=step,
            type=kind,
            error_code=code,
            tries=tries,
        )


class StepTimeout(TallyError):
    """The step took longer than it may."""

    code = "STEP_TIMEOUT"


class JobFailed(TallyError):
    """The job failed."""

    code = "JOB_FAILED"

    def __init__(self, message: str, *, job_id: str, error_code: str | None, type: str, trace: str) -> None:  # noqa: A002 (as in StepFailed)
        """Say which job failed and with what; `trace` is the stored traceback."""
        self.job_id = job_id
        self.error_code = error_code
        self.type = type
        self.trace = trace
        super().__init__(message, job_id=job_id, error_code=error_code, type=type, trace=trace)


class JobCancelled(TallyError):
    """The job was cancelled."""

    code = "JOB_CANCELLED"

    @staticmethod
    def of(what: str, job_id: str, code: str | None) -> JobCancelled:
        """Return the error of a job that was cancelled for the reason that its row has."""
        if code == DeadlineExceeded.code:
            return DeadlineExceeded(f"{what} was cancelled: its deadline has passed", job_id=job_id)
        return JobCancelled(f"{what} was cancelled", job_id=job_id)


class DeadlineExceeded(JobCancelled):
    """The job was cancelled because its deadline had passed."""

    code = "DEADLINE"


class TooDeep(TallyError):
    """The job has as many parents above it as a job may have, and cannot start children."""

    code = "TOO_DEEP"


class JobEnded(TallyError):
    """The job has ended already; the call changed nothing."""

    code = "JOB_ENDED"
    exit_code = 4
    http_status = 409


class NotFailed(TallyError):
    """The job has not failed; it can be forked, not retried."""

    code = "NOT_FAILED"
    exit_code = 4
    http_status = 409


class TakesNoSignals(TallyError):
    """This is a protocol job, which waits for remote workers and for no signal."""

    code = "TAKES_NO_SIGNALS"
    exit_code = 4
    http_status = 409


class ChildrenFailed(TallyError):
    """Children ended badly: `errors` has the error of each, in their order.

    `results` has what the others returned, by the index of the child; one that had not ended is in neither.
    """

    code = "CHILDREN_FAILED"

    def __init__(self, errors: Mapping[int, Exception], results: Mapping[int, object], total: int) -> None:
        """Carry every child's error, and the results that are there by the index of their child."""
        self.errors = tuple(errors.values())
        self.results = dict(results)
        first = str(self.errors[0]) if errors else ""
        super().__init__(
            f"{len(errors)} of {total} children failed; the first: {first}", failed=len(errors), total=total
        )


class NotFound(TallyError):
    """There is no such job."""

    code = "NOT_FOUND"
    exit_code = 3
    http_status = 404


class NoSuchStep(NotFound):
    """There is no such step in the records of this job."""

    code = "NO_SUCH_STEP"


class AppNotFound(NotFound):
    """There is no such module, or nothing of that name in it."""

    code = "APP_NOT_FOUND"


class UnknownWorkflow(NotFound):
    """There is no workflow of that name."""

    code = "UNKNOWN_WORKFLOW"


class NoSuchSchedule(NotFound):
    """There is no schedule of that name."""

    code = "NO_SUCH_SCHEDULE"


class ScheduleChanged(TallyError):
    """The schedule was changed meanwhile; look again."""

    code = "SCHEDULE_CHANGED"
    exit_code = 4
    http_status = 409


class NoSuchQueue(NotFound):
    """This queue has no limits: no program declares any, and no person has set any."""

    code = "NO_SUCH_QUEUE"


class KeyInUse(TallyError):
    """The job that has this key was claimed, so its arguments cannot be replaced any more."""

    code = "KEY_IN_USE"
    exit_code = 4
    http_status = 409


class KeyMoved(TallyError):
    """Another job was submitted under the key of this one, so it cannot be retried under that key."""

    code = "KEY_MOVED"
    exit_code = 4
    http_status = 409


class QueueChanged(TallyError):
    """The queue was changed meanwhile; look again."""

    code = "QUEUE_CHANGED"
    exit_code = 4
    http_status = 409


class StaleLease(TallyError):
    """The lease is no longer held; the report changed nothing."""

    code = "STALE_LEASE"
    http_status = 409


class EffectConflict(TallyError):
    """An effect was called under this key with other arguments."""

    code = "EFFECT_CONFLICT"
    exit_code = 4
    http_status = 409


class CallDiffers(TallyError):
    """A workflow makes another call than the one that it made here before; nothing was written."""

    code = "CALL_DIFFERS"
    exit_code = 4
    http_status = 409


class NotResolved(TallyError):
    """No effect of this job is in doubt, or it cannot be resolved now."""

    code = "NOT_RESOLVED"
    exit_code = 4
    http_status = 409


class IdempotencyConflict(TallyError):
    """This key was used with other content."""

    code = "IDEMPOTENCY_CONFLICT"
    exit_code = 4
    http_status = 409
