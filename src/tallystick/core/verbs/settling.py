"""Step 2 of the message that drove a segment, however that ends: in a wait, in a turn, with the job."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, assert_never

from tallystick.core.ledger.decisions import Verdict, count_down
from tallystick.core.ledger.marks import Entered, entry, is_answered, settled
from tallystick.core.pictures import START, Activity, JobFacts, Message, Picture
from tallystick.core.plans import MoveSemaphore, Refusal, Write
from tallystick.core.values import Fence
from tallystick.errors import InvariantBroken, LedgerCeiling, StaleLease


class Driver(NamedTuple):
    """What drove a segment: the start (no message), a message of the root, or an answer."""

    message: Message | None
    activity: Activity | None

    @property
    def enters_root(self) -> bool:
        """Tell whether running is taking it: the start, and the word to turn."""
        return self.message is None or self.message.is_of_root

    @property
    def is_consumed(self) -> bool:
        """Tell whether it has done its work, and so its obligation is closed when the segment ends."""
        return self.message is not None and self.message.is_taken


def driver_of(picture: Picture, guid: str) -> Driver | Refusal:
    """Return what drove the segment whose attempt names this message."""
    if guid == START:
        return Driver(None, None)
    message = picture.messages.get(guid)
    if message is None or message.acked_at is not None:
        return broken(picture.job.job_id, f"message {guid!r} drives a segment, and is gone or done with")
    # In an older form a signal did not say which wait has taken it: that one has all its digits already.
    if message.is_of_root or (message.place is None and message.is_taken):
        return Driver(message, None)
    activity = picture.named_by(message)
    if activity is None:
        return broken(picture.job.job_id, f"message {guid!r} drives a segment and answers nothing")
    if message.is_taken if activity.is_open else not is_answered(activity.ledger):
        return broken(picture.job.job_id, f"message {guid!r} and {activity.name} disagree about its answer")
    return Driver(message, activity)


class SettledJob(NamedTuple):
    """A job after step 2 of the message that drove its segment, and what is written besides its row."""

    job: JobFacts
    writes: tuple[Write, ...]


def settle(job: JobFacts, driver: Driver, delta: int, *, closes: bool, at: int) -> SettledJob | Refusal:
    """Move the semaphore and mark the message; it must come to zero by that exactly if the message closes.

    For the start all of it is in the row of the job, so one UPDATE of that row is the whole step.
    """
    moved = count_down(job.semaphore, delta)
    if moved.hit != closes:
        return broken(job.job_id, f"its semaphore comes to {moved.after}, with {delta} to close")
    message, activity = driver
    if message is None:
        root, start = settled(job.root_ledger, job.start_ledger, closes=closes)
        after = job._replace(semaphore=moved.after, root_ledger=root, start_ledger=start, start_acked_at=at)
        return SettledJob(after, ())
    if activity is None:
        root, guid = settled(job.root_ledger, message.ledger, closes=closes)
        if not message.is_of_root:
            root = job.root_ledger
        after, marked = job._replace(semaphore=moved.after, root_ledger=root, rev=job.rev + 1), None
    else:
        digits, guid = settled(activity.ledger, message.ledger, closes=closes)
        after = job._replace(semaphore=moved.after, rev=job.rev + 1)
        marked = None if digits == activity.ledger else activity._replace(ledger=digits, rev=activity.rev + 1)
    done = message._replace(ledger=guid, acked_at=at)
    write = MoveSemaphore(
        after, job.rev, delta, closes, done, message.ledger, marked, 0 if activity is None else activity.rev
    )
    return SettledJob(after, (write,))


def entered(job_id: str, name: str, activity: int, guid: int) -> Entered | Refusal:
    """Count the entry of a message in an activity, or say why nothing can enter it."""
    found = entry(activity, guid)
    if found.verdict is Verdict.RUN:
        return found
    return turned_away(found.verdict, job_id, name)


_TurnedAway: TypeAlias = Literal[Verdict.ESCALATE, Verdict.REFUSE, Verdict.ACKNOWLEDGE]


def turned_away(verdict: _TurnedAway, job_id: str, name: str) -> Refusal:
    """Return why a message does not enter an activity."""
    match verdict:
        case Verdict.ESCALATE:
            return full(job_id, name)
        case Verdict.REFUSE:
            return broken(job_id, f"a message comes to {name}, whose leg 1 is not complete")
        case Verdict.ACKNOWLEDGE:
            return broken(job_id, f"a message comes to {name} that has nothing left to do")
    assert_never(verdict)


def broken(job_id: str, why: str) -> Refusal:
    """Return the refusal of what the books do not allow; nothing is written, a person must look."""
    return Refusal(InvariantBroken(f"job {job_id}: {why}; see `tally doctor`", job_id=job_id))


def stale(fence: Fence) -> Refusal:
    """Return the refusal of a report by a worker that no longer holds the lease."""
    return Refusal(
        StaleLease(
            f"attempt {fence.attempt} of job {fence.job_id} no longer holds its lease; nothing was written",
            job_id=fence.job_id,
            attempt=fence.attempt,
            lease_id=fence.lease_id,
        )
    )


def full(job_id: str, name: str) -> Refusal:
    """Return the refusal of an entry that no digit can count: the job is to fail, its ledger stays."""
    return Refusal(
        LedgerCeiling(f"{name} of job {job_id} was entered as often as can be counted", job_id=job_id)
    )
