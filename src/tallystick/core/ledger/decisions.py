"""What to do next, decided from the ledgers alone.

The verbs, the sweep and the model checker call the same functions, and a test fails when one of them has
no caller in the package. Every function answers with a value and writes nothing; only `count_down` may
raise, when a semaphore would fall below zero. The caller commits the ledgers an answer carries in the same
transaction as the work that they prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.errors import SemaphoreUnderflow


class Verdict(StrEnum):
    """What happens to a message; the value is the sentence people read."""

    RUN = "run its work"
    ACKNOWLEDGE = "acknowledge the message, nothing is left to do"
    REFUSE = "refuse without writing anything; deliver it again later"
    ESCALATE = "fail fast: dead letter, and the job fails with LEDGER_CEILING"


class Leg1Entry(NamedTuple):
    """The answer to a leg-1 message, with the ledger to commit before any work."""

    verdict: Verdict
    activity: ActivityLedger


class Leg2Entry(NamedTuple):
    """The answer to a leg-2 message, with both ledgers to commit before any work."""

    verdict: Verdict
    activity: ActivityLedger
    guid: GuidLedger | None


class NextStep(StrEnum):
    """What is still to do for a message that has entered; the value is the sentence people read."""

    WORK = "step 1 runs next: do the work"
    CHILDREN = "step 1 done → step 2 runs next: open children, move the semaphore"
    TASKS = "steps 1 and 2 done, this message closed the job → step 3 runs next: completion tasks"
    ACKNOWLEDGE = "nothing left to do → acknowledge the message"


class Countdown(NamedTuple):
    """A semaphore after one message's step 2, and whether that message caused the threshold."""

    after: int
    hit: bool


def enter_leg1(activity: ActivityLedger) -> Leg1Entry:
    """Count an entry of leg 1 and say whether its work must run.

    At the ceiling a completed leg is acknowledged without being counted: a replay that was harmless a
    thousand times does not become a failure.
    """
    full = activity.leg1_entries >= ActivityLedger.FIELDS[0].top
    if activity.leg1_complete:
        return Leg1Entry(Verdict.ACKNOWLEDGE, activity if full else activity.enter_leg1())
    if full:
        return Leg1Entry(Verdict.ESCALATE, activity)
    return Leg1Entry(Verdict.RUN, activity.enter_leg1())


def enter_leg2(activity: ActivityLedger, guid: GuidLedger | None) -> Leg2Entry:
    """Count a message's first entry of leg 2 and say whether its steps must run.

    `guid` is the message's ledger, or None when it was never seen. A redelivery is not counted here: it
    keeps its ledger and with it its dimension.
    """
    if not activity.leg1_complete:
        return Leg2Entry(Verdict.REFUSE, activity, guid)
    if guid is not None:
        done = next_step(guid) is NextStep.ACKNOWLEDGE
        return Leg2Entry(Verdict.ACKNOWLEDGE if done else Verdict.RUN, activity, guid)
    if activity.leg2_entries >= ActivityLedger.FIELDS[-1].top:
        return Leg2Entry(Verdict.ESCALATE, activity, None)
    entered = activity.enter_leg2()
    return Leg2Entry(Verdict.RUN, entered, GuidLedger.first_seen(entered))


def next_step(guid: GuidLedger) -> NextStep:
    """Return the first step that this message has not durably done.

    Asked before any "is the job still alive": a closer that crashed finds the semaphore at its threshold
    and must still run step 3.
    """
    if not guid.work_done:
        return NextStep.WORK
    if not guid.children_spawned:
        return NextStep.CHILDREN
    if guid.closed_job and not guid.tasks_done:
        return NextStep.TASKS
    return NextStep.ACKNOWLEDGE


def count_down(before: int, delta: int, threshold: int = 0) -> Countdown:
    """Move a semaphore; a hit is caused by a change, never by standing at the threshold already."""
    after = before + delta
    if after < 0:
        raise SemaphoreUnderflow(
            f"the semaphore stands at {before} and cannot move by {delta}", before=before, delta=delta
        )
    return Countdown(after, hit=after == threshold and delta != 0)


class Delivery(StrEnum):
    """What becomes of an arriving message."""

    WAKE = "stored; the job becomes ready"
    KEEP = "stored; a live attempt or a later wait will take it"
    REFUSE = "not stored; its activity has not completed leg 1, deliver it again later"
    DROP = "acknowledged without effect; the job has ended or the wait was answered"


TAKERS: Final = {
    "signal": ("wait",),
    "timer": ("wait", "sleep"),
    "result": ("effect", "remote"),
    "child": ("group",),
    "resume": ("group",),
}
"""Which activities take a message of a kind; one that nothing takes would drive its job again and again."""


def decide_deliver(
    *,
    job_final: bool,
    names_activity: bool,
    leg1_complete: bool,
    wait_open: bool,
    attempt_live: bool,
) -> Delivery:
    """Say what becomes of a message that arrives for a job.

    A named signal is an inbox row and is never refused. A message that names an activity (result, timer,
    child) is refused until that activity's leg 1 is complete.
    """
    if job_final:
        return Delivery.DROP
    if names_activity:
        if not leg1_complete:
            return Delivery.REFUSE
        if not wait_open:
            return Delivery.DROP
    return Delivery.WAKE if wait_open and not attempt_live else Delivery.KEEP


class Reclaim(StrEnum):
    """What becomes of an attempt that a sweep looks at."""

    LEAVE = "the lease is live, the attempt has ended, or a person is to look first"
    FINISH = "COMMITTED: finish it, never call the function again"
    IN_DOUBT = "an effect's intent without a result: ask, never guess"
    RETRY = "abort the attempt and deliver its message again"
    FAIL = "abort the attempt; the budget is spent, the job fails"
    SETTLE = "abort the attempt; the job was being cancelled"
    HOLD = "abort the attempt and hold the job: what follows cannot be judged, or was refused"


def decide_reclaim(  # noqa: PLR0911 (a line for each verdict)
    *,
    status: str,
    expired: bool,
    effect: bool,
    held: bool,
    cancelling: bool,
    refused: bool,
    charged: int,
    budget: int | None,
    waits: bool = False,
    runs: bool = False,
) -> Reclaim:
    """Say what a sweep does with an attempt of a job that has not ended.

    `charged` counts this attempt too, as if it were aborted now: attempts are counted before they run, so a
    job that kills its worker every time ends after its budget. A `budget` that cannot be read is None.
    `refused`: what follows was decided before, and the database did not take it. What is committed is never
    aborted; if its job is `held`, a person looks first. An effect is left to the job's own attempt if that
    `runs`, and a job that `waits` for what came of an effect does not end: it is tried again.
    """
    committed = status == "COMMITTED"
    if not expired or status in ("DONE", "ABORTED"):
        return Reclaim.LEAVE
    if committed and (runs if effect else held):
        return Reclaim.LEAVE
    if refused:
        return Reclaim.HOLD
    if committed:
        return Reclaim.IN_DOUBT if effect else Reclaim.FINISH
    if cancelling:
        return Reclaim.RETRY if waits else Reclaim.SETTLE
    if budget is None:
        return Reclaim.HOLD
    return Reclaim.RETRY if waits or charged < budget else Reclaim.FAIL


def first_to_act(begun: Sequence[bool]) -> int | None:
    """Return which of the messages that could be taken is taken: one that has begun, else the oldest.

    The claim and the wait ask the same question of the same order, so that the message which drives a
    segment is also the one that it takes: otherwise its obligation would be closed by another.

    >>> first_to_act([False, True, False]), first_to_act([False, False]), first_to_act([])
    (1, 0, None)
    """
    if not begun:
        return None
    return begun.index(True) if True in begun else 0


def settle_delta(*, starts: bool, consumed: bool, opened: int, finished: bool = False) -> int | None:
    """Return by how much a segment's driving message moves the semaphore when the segment ends in a wait.

    It closes the one obligation that it answered. None: it answered nothing yet and stays, with its step 2,
    for a wait that is still to come. `finished` says that there will be none: the job turns. The start, and
    the word to turn, answer no activity: running is taking them.
    """
    if starts or consumed:
        return opened - 1
    return opened if finished else None


def close_delta(*, starts: bool, consumed: bool, still_open: int) -> int:
    """Return by how much the message that drove the last segment moves the semaphore when the job ends.

    What is still open is dropped in the same bundle, so the closer answers for that too.
    """
    return -still_open - (1 if starts or consumed else 0)


class Cancellation(StrEnum):
    """What a cancellation does now."""

    NOTHING = "the job has ended and stays as it is"
    ASK = "a live attempt is asked to end, and has its grace"
    END = "the job ends now, with everything that it had open"
    FINISH = "what is committed is finished; it cannot be undone"


def decide_cancel(*, final: bool, held: bool, committed: bool, live: bool, forced: bool) -> Cancellation:
    """Say what a cancellation does; `forced` means that the grace is over.

    Work that is `committed` is beyond cancelling and is finished: by its holder while the lease is `live`.
    """
    if final:
        return Cancellation.NOTHING
    if committed:
        return Cancellation.NOTHING if live else Cancellation.FINISH
    return Cancellation.ASK if held and not forced else Cancellation.END


class Ending(NamedTuple):
    """How a job and the attempt that ends it are written, so that the view of the attempts agrees."""

    job: str
    attempt: str
    cancelled: bool


def decide_end(*, state: str, attempt: str, cancelling: bool) -> Ending:
    """Return how a job ends whose last segment wants (state, attempt).

    A job that was asked to end is cancelled, even if its function came to its own end first; its attempt is
    then aborted, because an attempt that is DONE says SUCCEEDED.
    """
    if cancelling:
        return Ending("CANCELLED", "ABORTED", cancelled=True)
    return Ending(state, attempt, cancelled=state == "CANCELLED")
