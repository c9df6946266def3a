"""Every error a user can meet: one tree, stable codes, fields instead of prose.

TallyError                    root.py
├── ExtraMissing              a part of the package needs an extra that is not installed
├── InvariantBroken           the books do not balance; never the user's mistake
│   └── ChangeRefused         the database refused a change that its rules do not allow
│                             rules.py
├── StateTransitionError      a move that the lifecycle does not list
├── LedgerError
│   ├── LedgerCorrupt         digits that no history can have written
│   └── LedgerCeiling         a part of a job was entered as often as can be counted
├── SemaphoreUnderflow        more obligations closed than were open
│                             values.py
├── BadInput                  a value that cannot be accepted as it is
│   ├── NotCanonical          a value that has no canonical JSON form
│   ├── BadJson               bytes that are not strict JSON
│   ├── PayloadTooLarge       more bytes than the named limit allows
│   ├── PayloadSealed         what was stored through a payload_codec that is not here
│   ├── BadName               an identifier or key that breaks the naming rule
│   ├── BadDuration           a duration that cannot be read or is out of range
│   ├── BadSchedule           a timetable that cannot be read
│   ├── BadValue              a value that cannot be kept, or does not fit its annotation
│   └── BadCommand            a command of a type that no protocol takes, or in BURST mode without a document
│                             handlers.py
├── NoRetry                   raised by a handler: trying again cannot help
│   └── Fatal                 the same, under the name users write
├── NotDone                   raised by an effect that has certainly done nothing
├── Misuse                    the API called where it cannot keep its promise
│   ├── OutsideWorkflow       a call that is only durable inside a workflow
│   ├── WrongColour           sync called from async, or the other way round
│   ├── CallNotAwaited        a workflow returned before a call of a step had ended
│   ├── ParallelCalls         two calls of one step at once in threads, without names
│   ├── WaitInThread          a sync workflow waits in a thread that is not its own
│   ├── SlotsAreHeld          a job that holds its slot waits for a child in the same queue
│   └── DuplicateHandler      two functions under one name
├── AppBroken                 the user's module raised while it was imported
├── TxTooLong                 a transaction's body took more than its time
│                             jobs.py
├── StepFailed                a step failed for good; the same on replay
├── StepTimeout               a step took longer than it may
├── JobFailed                 the job failed
├── JobCancelled              the job was cancelled
│   └── DeadlineExceeded      its time was over
├── TooDeep                   a workflow calls itself without an end
├── JobEnded                  nothing can be said to a job that has ended
├── ChildrenFailed            children of a workflow ended badly
├── NotFailed                 only a job that has failed can be retried
├── TakesNoSignals            a signal was sent to a protocol job
├── NotFound                  no such job
│   ├── NoSuchStep            no such step in the records of a job
│   ├── AppNotFound           no such module, or nothing of that name in it
│   ├── UnknownWorkflow       no workflow of that name
│   ├── NoSuchSchedule        no schedule of that name
│   └── NoSuchQueue           no queue of that name has limits
├── ScheduleChanged           the schedule was changed meanwhile
├── QueueChanged              the queue was changed meanwhile
├── KeyInUse                  the job with this key was claimed, and keeps its arguments
├── KeyMoved                  the key of a job belongs to another by now, so it cannot be retried
├── StaleLease                a report by a worker that no longer holds the lease
├── IdempotencyConflict       one key, two contents
├── EffectConflict            one key of an effect, two calls
├── CallDiffers               a call that is not the one which the job has begun here
├── NotResolved               no effect is in doubt, or it cannot be resolved now
│                             requests.py
├── BadCallbackKeys           the secrets that sign callbacks are missing or cannot be used
├── BadSignature              a webhook that the sender did not sign, or long ago
├── PublishFailed             a directive that could not be handed to its service
├── RequestRefused            a request that is not valid
│   ├── NotKnown              no live key
│   ├── NotAllowed            an API key that does not allow that
│   ├── CrossSite             a page of another site asked for it
│   ├── NoSuchRoute           nothing at that address
│   ├── WrongMethod           another method than the address takes
│   ├── RequestTooSlow        it did not arrive in time
│   ├── WrongMediaType        a body that is not JSON
│   ├── WrongHost             a name under which the server does not answer
│   ├── HeadersTooLarge       the headers have more than 16 KiB together
│   ├── TooManyInFlight       the tenant has as many jobs in flight as it may have
│   ├── TooManyLogins         too many logins with wrong keys came from one address
│   └── FormStale             a form of the dashboard is not of the session that sends it
│                             stores.py
├── StoreError                nothing of this call became durable
│   ├── StoreMissing          no database there, and this command does not create one
│   ├── StoreReadOnly         no right to write
│   ├── StoreFull             no space
│   ├── StoreBusy             locked by other writers for too long
│   ├── StoreCorrupt          not an intact Tallystick database
│   ├── StoreGone             the file was moved or replaced under our feet
│   ├── StoreTooNew           written by a newer Tallystick
│   ├── StoreMisused          used after close, after a fork or by a foreign thread
│   ├── OutcomeUnknown        lost before the answer: durable or not, look before you repeat
│   ├── TwoLibraries          the same file through a second SQLite library
│   └── VulnerableSqlite      a SQLite that loses data
│                             runs.py
├── FolderError
│   ├── StorageFailed         the file system refused; nothing was acknowledged
│   ├── FolderUnsafe          a link or a strange file where a plain one belongs
│   └── LogCorrupt            an event log that no writer can have left behind
├── RunError
│   ├── PipelineUnsound       a pipeline declaration that cannot work
│   ├── RunBusy               another process holds the run
│   ├── RunNotFound           no such run, or none that was ever recorded
│   ├── RunEnded              the run has reached a final state
│   ├── ArtifactChanged       another process wrote an artifact while the run was on
│   ├── RunFailed             a worker or the orchestrator failed; the trail is complete
│   └── SnapshotInvalid       neither log nor snapshot can be trusted; the run has been failed
│                             stages.py
├── SequenceFatal             a slot was asked for an illegal move; the Sequence is latched
├── StageFault                an invariant of a stage is broken; the diagnostics say where it stood
├── JournalError              the journal of a stage cannot be used
│   ├── JournalCorrupt        it says what no stage can have written
│   ├── JournalBusy           another stage has it open
│   └── JournalMismatch       the items or the stage are not those of the journal
├── SkipItem                  raised by your function to skip an item
└── CancelItem                raised by your function to drop an item

A class carries its stable `code`, the exit code of the command line and the HTTP status, so that
no surface needs a mapping table. The first line of a class docstring is its default message.
The files are rooms for readers: code that uses an error imports it from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.errors.handlers import (
        AppBroken,
        CallNotAwaited,
        DuplicateHandler,
        Fatal,
        Misuse,
        NoRetry,
        NotDone,
        OutsideWorkflow,
        ParallelCalls,
        SlotsAreHeld,
        TxTooLong,
        WaitInThread,
        WrongColour,
    )
    from tallystick.errors.jobs import (
        AppNotFound,
        CallDiffers,
        ChildrenFailed,
        DeadlineExceeded,
        EffectConflict,
        IdempotencyConflict,
        JobCancelled,
        JobEnded,
        JobFailed,
        KeyInUse,
        KeyMoved,
        NoSuchQueue,
        NoSuchSchedule,
        NoSuchStep,
        NotFailed,
        NotFound,
        NotResolved,
        QueueChanged,
        ScheduleChanged,
        StaleLease,
        StepFailed,
        StepTimeout,
        TakesNoSignals,
        TooDeep,
        UnknownWorkflow,
    )
    from tallystick.errors.requests import (
        BadCallbackKeys,
        BadSignature,
        CrossSite,
        FormStale,
        HeadersTooLarge,
        NoSuchRoute,
        NotAllowed,
        NotKnown,
        PublishFailed,
        RequestRefused,
        RequestTooSlow,
        TooManyInFlight,
        TooManyLogins,
        WrongHost,
        WrongMediaType,
        WrongMethod,
    )
    from tallystick.errors.root import (
        ChangeRefused,
        ExtraMissing,
        InvariantBroken,
        TallyError,
    )
    from tallystick.errors.rules import (
        LedgerCeiling,
        LedgerCorrupt,
        LedgerError,
        SemaphoreUnderflow,
        StateTransitionError,
    )
    from tallystick.errors.runs import (
        ArtifactChanged,
        FolderError,
        FolderUnsafe,
        LogCorrupt,
        PipelineUnsound,
        RunBusy,
        RunEnded,
        RunError,
        RunFailed,
        RunNotFound,
        SnapshotInvalid,
        StorageFailed,
    )
    from tallystick.errors.stages import (
        CancelItem,
        JournalBusy,
        JournalCorrupt,
        JournalError,
        JournalMismatch,
        SequenceFatal,
        SkipItem,
        StageFault,
    )
    from tallystick.errors.stores import (
        OutcomeUnknown,
        StoreBusy,
        StoreCorrupt,
        StoreError,
        StoreFull,
        StoreGone,
        StoreMissing,
        StoreMisused,
        StoreReadOnly,
        StoreTooNew,
        TwoLibraries,
        VulnerableSqlite,
    )
    from tallystick.errors.values import (
        BadCommand,
        BadDuration,
        BadInput,
        BadJson,
        BadName,
        BadSchedule,
        BadValue,
        NotCanonical,
        PayloadSealed,
        PayloadTooLarge,
    )

__all__ = [
    "AppBroken",
    "AppNotFound",
    "ArtifactChanged",
    "BadCallbackKeys",
    "BadCommand",
    "BadDuration",
    "BadInput",
    "BadJson",
    "BadName",
    "BadSchedule",
    "BadSignature",
    "BadValue",
    "CallDiffers",
    "CallNotAwaited",
    "CancelItem",
    "ChangeRefused",
    "ChildrenFailed",
    "CrossSite",
    "DeadlineExceeded",
    "DuplicateHandler",
    "EffectConflict",
    "ExtraMissing",
    "Fatal",
    "FolderError",
    "FolderUnsafe",
    "FormStale",
    "HeadersTooLarge",
    "IdempotencyConflict",
    "InvariantBroken",
    "JobCancelled",
    "JobEnded",
    "JobFailed",
    "JournalBusy",
    "JournalCorrupt",
    "JournalError",
    "JournalMismatch",
    "KeyInUse",
    "KeyMoved",
    "LedgerCeiling",
    "LedgerCorrupt",
    "LedgerError",
    "LogCorrupt",
    "Misuse",
    "NoRetry",
    "NoSuchQueue",
    "NoSuchRoute",
    "NoSuchSchedule",
    "NoSuchStep",
    "NotAllowed",
    "NotCanonical",
    "NotDone",
    "NotFailed",
    "NotFound",
    "NotKnown",
    "NotResolved",
    "OutcomeUnknown",
    "OutsideWorkflow",
    "ParallelCalls",
    "PayloadSealed",
    "PayloadTooLarge",
    "PipelineUnsound",
    "PublishFailed",
    "QueueChanged",
    "RequestRefused",
    "RequestTooSlow",
    "RunBusy",
    "RunEnded",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "ScheduleChanged",
    "SemaphoreUnderflow",
    "SequenceFatal",
    "SkipItem",
    "SlotsAreHeld",
    "SnapshotInvalid",
    "StageFault",
    "StaleLease",
    "StateTransitionError",
    "StepFailed",
    "StepTimeout",
    "StorageFailed",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreGone",
    "StoreMissing",
    "StoreMisused",
    "StoreReadOnly",
    "StoreTooNew",
    "TakesNoSignals",
    "TallyError",
    "TooDeep",
    "TooManyInFlight",
    "TooManyLogins",
    "TwoLibraries",
    "TxTooLong",
    "UnknownWorkflow",
    "VulnerableSqlite",
    "WaitInThread",
    "WrongColour",
    "WrongHost",
    "WrongMediaType",
    "WrongMethod",
]

_FILES = ("root", "rules", "values", "handlers", "jobs", "requests", "stores", "runs", "stages")


def __getattr__(name: str) -> object:
    """Load the file of an error when it is first asked for: a small command starts with the few it needs."""
    if name in __all__:
        for file in _FILES:
            found = vars(import_module(f"{__name__}.{file}")).get(name)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
