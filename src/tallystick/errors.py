"""Every error a user can meet: one tree, stable codes, fields instead of prose.

TallyError
├── StateTransitionError      a move that the lifecycle does not list
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
├── NotFound                  no such job
├── StaleLease                a report by somebody who no longer holds the lease
├── IdempotencyConflict       one key, two contents
├── TxTooLong                 a transaction's body took more than its time
├── InvariantBroken           the books do not balance; never the user's mistake
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


class JobCancelled(TallyError):
    """The job was cancelled."""

    code = "JOB_CANCELLED"


class NotFound(TallyError):
    """There is no such job."""

    code = "NOT_FOUND"
    exit_code = 3
    http_status = 404


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
