"""Requests to a store: each one guarded change, and in its docstring what becomes durable together.

Every request that acts for a worker carries a `Fence`. It is checked in the transaction that writes,
against the clock of the store, after the lock is held; a stale one changes nothing and its outcome is
`StaleLease`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from tallystick.core.audit.removals import RETENTION
from tallystick.core.chain import Chain
from tallystick.core.lifecycles import AttemptState, JobState
from tallystick.core.schedules.rows import Schedule
from tallystick.core.tuples import make
from tallystick.core.values import (
    Fact,
    Fence,
    Group,
    NewJob,
    NewLease,
    Reservation,
    StoredError,
    TurnEnd,
    Wait,
    Wake,
)
from tallystick.errors import TallyError


class SubmitJob(NamedTuple):
    """Insert reservation, job (semaphore 1) and its first event, and with `lease` also claim it.

    One bundle: a crash leaves all of it or nothing. When the reservation exists already, nothing is written
    and the outcome is `Existing`. With a lease the job is born IN_PROGRESS with its first attempt and
    `events` has two.
    """

    job: NewJob
    facts: tuple[Fact, ...]
    reservation: Reservation | None = None
    lease: NewLease | None = None


class SubmitJobs(NamedTuple):
    """Insert QUEUED jobs that differ in their ids and payloads alone, each with its first event: all or none.

    `like` is what they share, with one fact, no reservation and no lease; so none can be refused alone.
    """

    like: SubmitJob
    job_ids: Sequence[str]
    payloads: Sequence[str]


def _untold(_job_id: str, _error: TallyError) -> None:
    """Announce no job that cannot be claimed."""


class ClaimJobs(NamedTuple):
    """Claim up to `limit` due jobs: attempt inserted, job taken, message entered, event; each whole or not.

    Only handlers in `handlers` (name, version) are considered. The entry marker of the message is committed
    here, before any work, so a job that kills its worker is counted. At most one of them is a suspect, and
    none without `suspects`: since it last made progress two workers were lost over it, or one and its next
    attempt is its last. Of jobs that died together twice each gets to run with no other suspect beside it,
    so a deadly one does not spend the budget of the rest.

    What the database refuses over one job keeps no other from being claimed: that job is held, and
    `turned_down` is told of it, and why. With `only`, no other job is considered.
    """

    owner: str
    queues: tuple[str, ...]
    handlers: frozenset[tuple[str, str]]
    limit: int
    lease_ms: int
    lease_ids: Callable[[], str]
    suspects: bool = True
    turned_down: Callable[[str, TallyError], None] = _untold
    only: str = ""
    # The hooks that the claiming program declares: from now on the job carries these.
    hooks: str | None = None


class RecordStep(NamedTuple):
    """Insert the row of an inline step under the fence: result, digits and event in one row."""

    fence: Fence
    chain: Chain
    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    at: int
    # When its last try began, by the clock of its worker; its fact does not tell that.
    began_at: int


class RecordEvent(NamedTuple):
    """Append an event under the fence (a failed try, a note)."""

    fence: Fence
    fact: Fact


class SetValue(NamedTuple):
    """Show a value of a job under a name, in the place of the one before, under the fence; it is no fact."""

    fence: Fence
    name: str
    value: str


class EndAttempt(NamedTuple):
    """Abort the attempt and leave its job to others: due again at `ready_at`, or held, with an event."""

    fence: Fence
    reason: str
    charged: bool
    ready_at: int | None
    hold: str | None
    hold_reason: str | None
    fact: Fact


class EndJob(NamedTuple):
    """Close the job: result or error, attempt ended, semaphore down, start message marked, event, one bundle.

    The closer digit is set in the same statement that moves the semaphore. A job that fails closes like any
    other. One that was asked to end is cancelled, whatever its function made of it: then the outcome is the
    `EndJob` that was written instead, else None.
    """

    fence: Fence
    state: str
    attempt_status: str
    reason: str | None
    charged: bool
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None
    fact: Fact
    driver: str = "start"
    waited: bool = False
    parent: tuple[str, str] | None = None

    @classmethod
    def of(
        cls,
        fence: Fence,
        state: JobState,
        fact: Fact,
        *,
        driver: str = "start",
        waited: bool = False,
        parent: tuple[str, str] | None = None,
        result: str | None = None,
        reason: str | None = None,
        error: StoredError | None = None,
    ) -> EndJob:
        """Return the end of a job: the attempt is DONE if the job succeeded, else ABORTED for a reason.

        An error is charged to the budget; a job that was asked to end is not.
        """
        status = AttemptState.DONE if state is JobState.SUCCEEDED else AttemptState.ABORTED
        text, code, message = error or (None, None, None)
        about = (text, code, message, fact, driver, waited, parent)
        return make(cls, (fence, state, status, reason, error is not None, result, *about))


class Await(NamedTuple):
    """Take the answer to one of the waits, or end the segment until there is one; one bundle either way.

    All of them are opened with leg 1 complete, unless they are. If an unconsumed message answers one, that
    wait gets its result and the message its marks, and the outcome is the `Answer`: the segment goes on.
    Otherwise the driving message is closed, the semaphore moves by what was opened less one, the attempt ends
    SUSPENDED and not charged, and the outcome is None. Delivery locks the same job row, so no wake-up falls
    between the look and the suspension. If the job was asked to end and the segment does not know (`asked`),
    no wait is written and the outcome is `JobState.CANCELLING`; if it is held, the outcome is that `Hold`.
    An `Answer` brings up to `ahead` further signals of its name, for waits that are still to come.
    """

    fence: Fence
    driver: str
    dimension: int
    waits: tuple[Wait, ...]
    fact: Fact
    asked: bool = False
    ahead: int = 0


class AskRemotes(NamedTuple):
    """Let the directives of remote steps out while the segment goes on with something else.

    `Await` finds them open when the segment comes to wait. If the job was asked to end or is held, nothing is
    written: the wait hears of that. There is no fact: `chain` is what the segment knows of its job's history.
    """

    fence: Fence
    chain: Chain
    dimension: int
    waits: tuple[Wait, ...]


class TakeAnswer(NamedTuple):
    """Give a wait a message that the segment knew, and has gone on with: it drove the claim, or came ahead.

    It writes what `Await` writes when it answers that wait. Like a step it is written also when the job was
    asked to end or held meanwhile: the segment hears of that at its next call.
    """

    fence: Fence
    chain: Chain
    dimension: int
    wait: Wait
    wake: Wake
    at: int


class Deliver(NamedTuple):
    """Store a message, once for each guid, and make its job due if it waits for it and no worker runs it.

    It stands behind everything that is in the job's inbox then: messages are taken in the order in which they
    became durable, whatever the clocks of their senders say.
    """

    guid: str
    job_id: str
    kind: Literal["signal", "timer", "child", "result", "resume"]
    name: str
    payload: str | None


class Spawn(NamedTuple):
    """Open a group, the first time, and insert some of its children, each with its first event.

    Opening counts one obligation on the parent and `total` on the group. Children have identifiers that
    follow from their place, so a spawn that was cut short is simply made again. The
    outcome is True when all were there already, so that nothing is left to spawn. A job that was asked to end
    starts nothing: then nothing is written and the outcome is `JobState.CANCELLING`. Children have at most
    the time that their parent has; detached ones have their own, and go on when it has ended.
    """

    fence: Fence
    chain: Chain
    group: Group
    total: int
    threshold: int
    fail_fast: bool
    children: tuple[tuple[NewJob, Fact], ...]
    at: int


class Cycle(NamedTuple):
    """End the segment by a turn of the same job: next dimension, new arguments, empty history, due at once.

    What the old dimension had open is dropped; signals that were not taken stay. At the ceiling of entries
    nothing is written and the outcome is `LedgerCeiling`. A job that was asked to end ends instead, and the
    outcome is its `EndJob`.
    """

    fence: Fence
    driver: str
    dimension: int
    payload: str
    fact: Fact


class CancelJob(NamedTuple):
    """Cancel a job: at once when no worker runs it, else by asking, with `grace_ms` to end by itself.

    With `force` the grace is over: the attempt is aborted, which fences a worker that still runs it, and the
    job ends. `late` cancels only a job whose deadline has passed, and says so. A job with an effect
    of unknown outcome waits for that, unless a person ends it by `abandon`: effects stay open without it. On
    a final job nothing changes. Everything below the job that is not detached is asked in the same bundle.
    The outcome is the state the job is in afterwards: an `EndedNow` if it has ended by this.
    """

    job_id: str
    grace_ms: int
    force: bool = False
    late: bool = False
    abandon: bool = False
    # Who asks, for the fact that tells of it.
    by: str = ""


class CancelUnclaimed(NamedTuple):
    """End those of these jobs that were asked to end, that no worker ever held and whose parent has ended.

    Each ends as `CancelJob` by force ends it; jobs that differ in nothing but their identifiers are decided
    once and written as lists. Any other job stays as it is. The outcome is the set of jobs that have ended.
    """

    job_ids: tuple[str, ...]


class ReclaimAttempt(NamedTuple):
    """End an attempt whose lease has run out, and with it what follows for its job, in one bundle.

    What follows is decided from the rows as they are under the lock; the outcome is the verdict, a `Reclaim`.
    An attempt that is live again, has ended or has a successor is left. One that is `excused` is not charged:
    its worker lives, and the store did not let it write. `refused` says why the same request could not be
    written before: then the attempt ends and its job is held, whatever else would follow. A `unit` names an
    effect of the job; the job's own attempts have none.
    """

    fence: Fence
    unit: str = ""
    excused: bool = False
    refused: str | None = None


class PruneJobs(NamedTuple):
    """Look at the next `limit` jobs behind `after` and remove those that ended at least `older_ms` ago.

    Each job goes whole, with its reservation, or stays whole; one bundle. A job stays while it owes anything
    (an open activity, a message, a directive, an attempt that is not done), while any child of it is there or
    an open fork needs its group, and as long as its parent stays. What goes is written down in the log of
    removals, with its author (`who`). The outcome is a `Pruned`.
    """

    older_ms: int
    limit: int
    after: str = ""
    who: str = RETENTION


class TrimTurns(NamedTuple):
    """Remove the turns of a loop up to one that is over: its facts, steps, messages and attempts.

    It shares its bundle with the fact that tells of it, whose fence it needs. The removal is written down in
    the log. What stays is what a sender may repeat (a signal with an id), and what was not taken.
    """

    job_id: str
    end: TurnEnd


class RenewLeases(NamedTuple):
    """Move the end of all these leases, in one statement. An expired one is never revived.

    The outcome is the set of fences that are still held.
    """

    fences: tuple[Fence, ...]
    lease_ms: int


class TakeHook(NamedTuple):
    """Take the right to call the hook that is owed to a job, for `lease_ms`: no other worker calls it then.

    `tries` is how many calls the caller has seen. The outcome is the hook, or None if none is owed any more
    or another worker has it.
    """

    job_id: str
    tries: int
    lease_ms: int


class TellHook(NamedTuple):
    """Note what came of the call that was taken as number `tries`: the hook is told, or owed again later.

    `error` is what the call raised. If the job has moved on, or another worker has the hook, nothing changes.
    The outcome is whether this was written.
    """

    job_id: str
    tries: int
    hook: str
    error: str | None = None
    later_ms: int = 0


class SaveSchedule(NamedTuple):
    """Put a schedule in the place of the one that was seen, by its revision; a new one has seen none.

    If it was changed meanwhile nothing is written, and the outcome is `ScheduleChanged`. A tick is a bundle:
    the job, and the schedule behind it.
    """

    schedule: Schedule
    seen: int | None


class DropSchedule(NamedTuple):
    """Remove a schedule that was seen; its jobs stay. If it was changed meanwhile: `ScheduleChanged`."""

    schedule_id: str
    seen: int
