"""Every error a user can meet: one tree, stable codes, fields instead of prose.

TallyError
├── StateTransitionError      a move that the lifecycle does not list
├── RunError
│   ├── PipelineUnsound       a pipeline declaration that cannot work
│   ├── RunBusy               another process holds the run
│   ├── RunNotFound           no such run, or none that was ever recorded
│   ├── RunEnded              the run has reached a final state
│   ├── ArtifactChanged       somebody else wrote an artifact while the run was on
│   ├── RunFailed             a worker or the orchestrator failed; the trail is complete
│   └── SnapshotInvalid       neither log nor snapshot can be trusted; the run has been failed
├── FolderError
│   ├── StorageFailed         the file system refused; nothing was acknowledged
│   ├── FolderUnsafe          a link or a strange file where a plain one belongs
│   └── LogCorrupt            an event log that no writer can have left behind
├── ExtraMissing              a part of the package needs an extra that is not installed
├── LedgerError
│   ├── LedgerCorrupt         digits that no history can have written
│   └── LedgerCeiling         a counter is full; the next entry must escalate
├── SemaphoreUnderflow        more obligations closed than were open
├── BadInput                  a value that cannot be accepted as it is
│   ├── NotCanonical          a value that has no canonical JSON form
│   ├── BadJson               bytes that are not strict JSON
│   ├── PayloadTooLarge       more bytes than the named limit allows
│   ├── BadName               an identifier or key that breaks the naming rule
│   ├── BadDuration           a duration that cannot be read or is out of range
│   └── BadValue              a value that cannot be kept, or does not fit its annotation
├── NoRetry                   raised by a handler: trying again cannot help
│   └── Fatal                 the same, under the name users write
├── Misuse                    the API called where it cannot keep its promise
│   ├── OutsideWorkflow       a call that is only durable inside a workflow
│   ├── WrongColour           sync called from async, or the other way round
│   ├── ParallelCalls         two calls of one step at once, without names
│   └── DuplicateHandler      two functions under one name
├── StepFailed                a step failed for good; the same on replay
├── StepTimeout               a step took longer than it may
├── DeadlineExceeded          the job took longer than it may
├── JobFailed                 the job ended badly
├── JobCancelled              the job was cancelled
├── JobEnded                  nothing can be said to a job that has ended
├── ChildrenFailed            children of a workflow ended badly
├── NotFound                  no such job
│   ├── AppNotFound           no such module, or nothing of that name in it
│   └── UnknownWorkflow       no workflow of that name
├── AppBroken                 the user's module raised while it was imported
├── StaleLease                a report by somebody who no longer holds the lease
├── IdempotencyConflict       one key, two contents
├── TxTooLong                 a transaction's body took more than its time
├── InvariantBroken           the books do not balance; never the user's mistake
├── (tallystick.stage.errors) what Sequences, stages and their journals raise, drawn there
└── StoreError                nothing of this call became durable
    ├── StoreMissing          no database there, and this command does not create one
    ├── StoreReadOnly         no right to write
    ├── StoreFull             no space
    ├── StoreBusy             locked by a program that does not take turns
    ├── StoreCorrupt          not an intact database of ours
    ├── StoreGone             the file was moved or replaced under our feet
    ├── StoreTooNew           written by a newer Tallystick
    ├── StoreMisused          used after close, after a fork or by a foreign thread
    ├── OutcomeUnknown        lost before the answer: durable or not, look before you repeat
    ├── TwoLibraries          the same file through a second SQLite library
    └── VulnerableSqlite      a SQLite that loses data

A class carries its stable `code`, the exit code of the command line and the HTTP status, so that
no surface needs a mapping table. The first line of a class docstring is its default message.
"""

from __future__ import annotations


class TallyError(Exception):
    """Tallystick refused to go on."""

    code = "TALLY_ERROR"
    exit_code = 1
    http_status = 500

    def __init__(self, message: str = "", **fields: object) -> None:
        """Keep the fields, so that a program can read what a person reads in the message."""
        self.message = message or (type(self).__doc__ or self.code).splitlines()[0]
        self.fields = fields
        super().__init__(self.message)

    def as_dict(self) -> dict[str, object]:
        """Return the error as data, the way `--json` and HTTP show it."""
        return {"code": self.code, "message": self.message, **self.fields}


class StateTransitionError(TallyError):
    """This lifecycle has no such move."""

    code = "ILLEGAL_TRANSITION"
    exit_code = 4
    http_status = 409

    def __init__(
        self,
        machine: str,
        state: str,
        attempted: str,
        *,
        legal: tuple[str, ...] = (),
        entity: str = "",
        owner: str = "",
        at: float | None = None,
    ) -> None:
        """Say what was tried, on what, by whom, when, and what would have been legal."""
        self.machine = machine
        self.entity = entity
        self.state = state
        self.attempted = attempted
        self.owner = owner
        self.at = at
        self.legal = legal
        subject = f"{machine} {entity}".rstrip()
        moves = ", ".join(legal) if legal else "none, the state is final"
        super().__init__(
            f"{subject} is {state} and cannot {attempted}; legal from here: {moves}",
            machine=machine,
            entity=entity,
            state=state,
            attempted=attempted,
            owner=owner,
            at=at,
            legal=list(legal),
        )


class ExtraMissing(TallyError):
    """A part of Tallystick needs packages that are not installed."""

    code = "EXTRA_MISSING"

    def __init__(self, what: str, extra: str) -> None:
        """Name the part, and the extra that brings what it needs."""
        super().__init__(
            f"{what} needs more packages: pip install 'tallystick[{extra}]'", what=what, extra=extra
        )


class FolderError(TallyError):
    """A folder cannot be used as it is."""

    code = "FOLDER_ERROR"


class StorageFailed(FolderError):
    """The file system refused, and nothing was acknowledged."""

    code = "STORAGE_FAILED"
    http_status = 507

    def __init__(self, message: str = "", *, call: str = "", path: str = "", errno: int = 0) -> None:
        """Say which call failed on what, with the number the system gave."""
        self.call = call
        self.path = path
        self.errno = errno
        super().__init__(message, call=call, path=path, errno=errno)

    @classmethod
    def of(cls, call: str, path: str, error: OSError) -> StorageFailed:
        """Return the failure of one system call."""
        return cls(
            f"{call} of {path} failed: {error.strerror or error}",
            call=call,
            path=path,
            errno=error.errno or 0,
        )


class FolderUnsafe(FolderError):
    """Something else stands where a plain file or folder belongs."""

    code = "FOLDER_UNSAFE"
    exit_code = 4


class LogCorrupt(FolderError):
    """The event log holds something that no writer can have left behind."""

    code = "LOG_CORRUPT"
    exit_code = 4

    def __init__(self, path: str, line: int, reason: str) -> None:
        """Say where the log stops making sense, and why."""
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path} line {line}: {reason}", path=path, line=line, reason=reason)


class RunError(TallyError):
    """A run cannot go on."""

    code = "RUN_ERROR"


class PipelineUnsound(RunError):
    """This pipeline cannot work as it is declared."""

    code = "PIPELINE_UNSOUND"
    exit_code = 4
    http_status = 422


class RunBusy(RunError):
    """Another process holds this run."""

    code = "RUN_BUSY"
    http_status = 409


class RunNotFound(RunError):
    """There is no such run."""

    code = "RUN_NOT_FOUND"
    exit_code = 4
    http_status = 404


class RunEnded(RunError):
    """The run has reached a final state, and final states have no exit."""

    code = "RUN_ENDED"
    exit_code = 4
    http_status = 409


class ArtifactChanged(RunError):
    """Somebody else wrote an artifact while the run was on; resume the run."""

    code = "ARTIFACT_CHANGED"


class RunFailed(RunError):
    """The run has failed; its log tells the whole story."""

    code = "RUN_FAILED"


class SnapshotInvalid(RunError):
    """Neither the log nor the snapshot of this run can be trusted; the run has been failed."""

    code = "SNAPSHOT_INVALID"


class LedgerError(TallyError):
    """A fifteen-digit ledger cannot be used as it is."""

    code = "LEDGER_ERROR"
    exit_code = 4
    http_status = 409


class LedgerCorrupt(LedgerError):
    """These digits cannot have been written by any legal history."""

    code = "LEDGER_CORRUPT"
    http_status = 500


class LedgerCeiling(LedgerError):
    """A counter of the ledger is full; the activity must fail fast and escalate."""

    code = "LEDGER_CEILING"


class SemaphoreUnderflow(TallyError):
    """The semaphore would fall below zero; nothing was written."""

    code = "SEMAPHORE_UNDERFLOW"
    http_status = 409


class BadInput(TallyError):
    """A value cannot be accepted as it is."""

    code = "BAD_INPUT"
    exit_code = 4
    http_status = 422


class NotCanonical(BadInput):
    """This value has no canonical JSON form."""

    code = "NOT_CANONICAL"


class BadJson(BadInput):
    """These bytes are not strict JSON."""

    code = "BAD_JSON"
    http_status = 400


class PayloadTooLarge(BadInput):
    """There are more bytes than the limit allows."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class BadName(BadInput):
    """This name breaks the naming rule."""

    code = "BAD_NAME"


class BadDuration(BadInput):
    """This is not a duration."""

    code = "BAD_DURATION"


class NoRetry(TallyError):
    """The handler says that trying again cannot help."""

    code = "NO_RETRY"


class BadValue(BadInput):
    """This value cannot be kept as JSON, or does not fit its annotation."""

    code = "BAD_VALUE"


class Fatal(NoRetry):
    """Raise this in a step that must not be tried again."""

    code = "FATAL"


class Misuse(TallyError):
    """The API was called where it cannot keep its promise."""

    code = "MISUSE"


class OutsideWorkflow(Misuse):
    """This call is durable only inside a workflow."""

    code = "OUTSIDE_WORKFLOW"


class WrongColour(Misuse):
    """A sync call in an async workflow, or the other way round."""

    code = "WRONG_COLOUR"


class ParallelCalls(Misuse):
    """Two calls of one step run at once and cannot be told apart on replay."""

    code = "PARALLEL_CALLS"


class DuplicateHandler(Misuse):
    """Two functions have the same name."""

    code = "DUPLICATE_HANDLER"


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


class DeadlineExceeded(TallyError):
    """The job's deadline has passed."""

    code = "DEADLINE_EXCEEDED"


class JobFailed(TallyError):
    """The job ended badly."""

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


class JobEnded(TallyError):
    """The job has ended, and what was meant for it changed nothing."""

    code = "JOB_ENDED"
    exit_code = 4
    http_status = 409


class ChildrenFailed(TallyError):
    """Children ended badly."""

    code = "CHILDREN_FAILED"

    def __init__(self, errors: tuple[TallyError, ...], total: int) -> None:
        """Carry every child's error, and say how many of how many failed."""
        self.errors = errors
        first = errors[0].message if errors else ""
        super().__init__(
            f"{len(errors)} of {total} children failed; the first: {first}", failed=len(errors), total=total
        )


class NotFound(TallyError):
    """There is no such job."""

    code = "NOT_FOUND"
    exit_code = 3
    http_status = 404


class AppNotFound(NotFound):
    """There is no such module, or nothing of that name in it."""

    code = "APP_NOT_FOUND"


class UnknownWorkflow(NotFound):
    """There is no workflow of that name."""

    code = "UNKNOWN_WORKFLOW"


class AppBroken(TallyError):
    """The module raised while it was imported."""

    code = "APP_BROKEN"


class StaleLease(TallyError):
    """The lease is no longer held; the report changed nothing."""

    code = "STALE_LEASE"
    http_status = 409


class IdempotencyConflict(TallyError):
    """This key was used with other content."""

    code = "IDEMPOTENCY_CONFLICT"
    exit_code = 4
    http_status = 409


class InvariantBroken(TallyError):
    """The books do not balance; please report this."""

    code = "INVARIANT_BROKEN"


class StoreError(TallyError):
    """The store could not do this; nothing of it became durable."""

    code = "STORE_ERROR"
    exit_code = 5
    http_status = 503


class StoreMissing(StoreError):
    """There is no database there."""

    code = "STORE_MISSING"


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    code = "STORE_READ_ONLY"


class StoreFull(StoreError):
    """There is no space left."""

    code = "STORE_FULL"


class StoreBusy(StoreError):
    """The database is locked by a program that does not take turns."""

    code = "STORE_BUSY"


class StoreCorrupt(StoreError):
    """This is not an intact database of ours."""

    code = "STORE_CORRUPT"


class StoreGone(StoreError):
    """The database was moved, deleted or replaced while it was open."""

    code = "STORE_GONE"


class StoreTooNew(StoreError):
    """The database was written by a newer Tallystick."""

    code = "STORE_TOO_NEW"


class StoreMisused(StoreError):
    """The store was used after it was closed, after a fork, or by a thread it was not lent to."""

    code = "STORE_MISUSED"
    exit_code = 1
    http_status = 500


class OutcomeUnknown(StoreError):
    """The server was lost before it said whether this became durable; look before you repeat it."""

    code = "OUTCOME_UNKNOWN"


class TwoLibraries(StoreError):
    """The same file is open through two SQLite libraries in one process."""

    code = "TWO_LIBRARIES"


class VulnerableSqlite(StoreError):
    """This SQLite is known to lose data."""

    code = "VULNERABLE_SQLITE"


class TxTooLong(TallyError):
    """The body of a transaction took more than its time and was rolled back."""

    code = "TX_TOO_LONG"
