"""Waiting and waking: two decisions under the lock of one job, so no wake-up can fall between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from tallystick.core.audit.fingerprints import of_group
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.chain import Chain, step_payload
from tallystick.core.ledger.decisions import TAKERS, Delivery, decide_deliver, first_to_act, settle_delta
from tallystick.core.ledger.marks import OPENED, first_entry, is_complete, settled, worked
from tallystick.core.lifecycles import ATTEMPT, JOB, STEP, AttemptState, JobState, StepState
from tallystick.core.limits import AHEAD_SIGNALS_BYTES_MAX
from tallystick.core.pictures import (
    Activity,
    JobFacts,
    Message,
    Now,
    Picture,
    Pictures,
    Place,
    place_of,
    timer_of,
)
from tallystick.core.plans import (
    Decision,
    InsertActivity,
    InsertMessage,
    MoveActivity,
    MoveAttempt,
    MoveJob,
    MoveMessage,
    MoveSemaphore,
    Plan,
    Refusal,
    Relook,
    Write,
)
from tallystick.core.requests import AskRemotes, Await, Deliver, TakeAnswer
from tallystick.core.values import Answer, Delivered, Fact, Fence, Wait, Wake
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.protocol.remote import Taken, ended_by, last_opened, open_step, other_call, wake
from tallystick.core.verbs.settling import broken, driver_of, entered, settle, stale

ANSWERED = STEP.follow(StepState.IN_PROGRESS, "succeed").target
SUSPENDED = ATTEMPT.follow(AttemptState.IN_PROGRESS, "abort").target
RUNNING = AttemptState.IN_PROGRESS
# What counts its own entries of leg 1: bundles of children, directives, calls.
_COUNTED_ELSEWHERE = ("group", "remote", "effect")
# A wait that is answered beside the message that drives its job: two obligations.
_BESIDE = 2
BEGUN = STEP.follow(StepState.PENDING, "dispatch", "sent", "ack").target


def suspend_or_answer(pictures: Pictures, request: Await, now: Now) -> Decision:
    """Answer a wait from the inbox, or end the segment until there is one, or say that the job is to end."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    job = picture.job
    if job.state == JobState.CANCELLING and not (request.asked and _asks_nothing(picture, request)):
        return Plan((), JobState.CANCELLING)
    if job.hold is not None:
        return Plan((), Hold(job.hold))
    return _refuse_waiting(picture, request) or _wait(picture, request, now)


def ask_remotes(pictures: Pictures, request: AskRemotes, now: Now) -> Decision:
    """Open remote steps of a segment that goes on: their directives do not wait until it is idle."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    job = picture.job
    if job.state == JobState.CANCELLING or job.hold is not None:
        return Plan(())
    opened, job, writes = _open(picture, job, request, now)
    after = job._replace(semaphore=job.semaphore + opened, rev=job.rev + 1)
    return Plan((*writes, MoveJob(after, job.rev, None, last_opened(writes))))


def _asks_nothing(picture: Picture, request: Await) -> bool:
    """Tell whether no directive is to go out: a job that cleans up may wait, and ask for nothing more."""
    return all(
        wait.asks is None or place_of(request.dimension, wait) in picture.activities for wait in request.waits
    )


def _wait(picture: Picture, request: Await, now: Now) -> Decision:
    found = [each for index in range(len(request.waits)) for each in _answers(picture, request, index, now)]
    found.sort(key=lambda each: (each.message.since, each.message.arrived))
    first = first_to_act([each.message.ledger > 0 for each in found])
    if first is not None:
        taken = found.pop(first)
        return _answer(picture, request, taken, found, now)
    if not picture.whole:
        return Relook(picture.job.job_id)
    return _suspend(picture, request, now)


def take_answer(pictures: Pictures, request: TakeAnswer, now: Now) -> Decision:
    """Give a wait a message that the segment knows, as a step is written: whatever was asked of the job."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    place = place_of(request.dimension, request.wait)
    if request.wait.asks is not None and (otherwise := other_call(picture, place, request.wait.asks)):
        return otherwise
    activity, message = picture.activities.get(place), picture.messages.get(request.wake.guid)
    if message is None or message.acked_at is not None or message.is_taken:
        return broken(request.fence.job_id, f"the message for {request.wait.name} is gone or taken")
    is_open = message.place is None if activity is None else activity.is_open
    if not is_open:
        return broken(request.fence.job_id, f"{request.wait.name} is not open")
    if message.name != request.wait.name or message.place not in (None, place):
        return broken(request.fence.job_id, f"message {message.guid!r} is not that of {request.wait.name}")
    taking = Taking(request.fence, message.guid, request.chain, request.at, request.dimension)
    taken = take(picture, taking, request.wait, activity, message, now, picture.job)
    return taken if isinstance(taken, Refusal) else Plan(taken)


class _Found(NamedTuple):
    """A message that answers one of the waits; a timer that is due before it was set is not stored yet."""

    which: int
    message: Message
    stored: bool = True


class Taking(NamedTuple):
    """The attempt that takes an answer, and when."""

    fence: Fence
    driver: str
    chain: Chain
    at: int
    dimension: int


def _refuse_waiting(picture: Picture, request: Await) -> Refusal | None:
    """Refuse a wait that is over, a group never opened, a timer without its wait, another remote call."""
    for wait in request.waits:
        place = place_of(request.dimension, wait)
        if wait.asks is not None and (otherwise := other_call(picture, place, wait.asks)):
            return otherwise
        activity = picture.activities.get(place)
        if activity is not None:
            refused = not activity.is_open
        else:
            timed = wait.due_at is not None and timer_of(picture.job.job_id, place) in picture.messages
            unopened = wait.kind in ("group", "effect")
            refused = unopened or timed or (wait.kind == "remote") != (wait.asks is not None)
        if refused:
            return broken(picture.job.job_id, f"it waits for {wait.name}, which is over or was never opened")
    return None


def _answers(picture: Picture, request: Await, index: int, now: Now) -> list[_Found]:
    """Return what would answer a wait: signals of its name, its timer when due, RESULT or closed group."""
    wait = request.waits[index]
    place = place_of(request.dimension, wait)
    found = []
    for message in picture.messages.values():
        if message.name != wait.name or message.acked_at is not None or message.is_taken:
            continue
        if message.kind == "signal":
            # One that has entered a wait answers that one and no other.
            answers = wait.kind == "wait" and (message.place is None or message.place == place)
        elif message.kind == "timer":
            answers = message.place == place and (message.due_at is None or message.due_at <= now.wall)
        elif message.kind == "result":
            answers = message.place == place
        else:
            group = picture.activities.get(place)
            answers = (
                message.kind == "resume" and message.place == place and group is not None and group.is_closed
            )
        if answers:
            found.append(_Found(index, message))
    if wait.due_at is not None and place not in picture.activities:
        timer = _timer(picture.job, place, now.moment(wait.due_at, request.fact.at), now)
        if timer.since <= now.wall:
            found.append(_Found(index, timer, stored=False))
    return found


def _timer(job: JobFacts, place: Place, due_at: int, now: Now) -> Message:
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    guid = timer_of(job.job_id, place)
    return Message(guid, job.job_id, *place, "timer", None, due_at, 0, 0, *inbox)


def _answer(picture: Picture, request: Await, found: _Found, others: Sequence[_Found], now: Now) -> Decision:
    """Give the first answer to its wait; the others are opened all the same, with their timers running."""
    wait, message = request.waits[found.which], found.message
    writes: list[Write] = []
    if not found.stored:
        writes.append(InsertMessage(message))
    opened, job, births = _open(picture, picture.job, request, now, but=found.which)
    writes += births
    if opened:
        after = job._replace(semaphore=job.semaphore + opened, rev=job.rev + 1)
        writes.append(MoveJob(after, job.rev, None, last_opened(births)))
        job = after
    activity = picture.activities.get(place_of(request.dimension, wait))
    taking = Taking(request.fence, request.driver, request.fact.chain, request.fact.at, request.dimension)
    taken = take(picture, taking, wait, activity, message, now, job)
    if isinstance(taken, Refusal):
        return taken
    ahead = _ahead(others, found.which, request.ahead)
    answer = Answer(message.guid, message.payload, message.kind == "timer", found.which, ahead)
    return Plan((*writes, *taken), answer)


def _ahead(others: Sequence[_Found], which: int, limit: int) -> tuple[Wake, ...]:
    """Return the signals that the next waits of a name will take, one after the other."""
    ahead: list[Wake] = []
    room = AHEAD_SIGNALS_BYTES_MAX
    for each in others:
        message = each.message
        # All other answers name the wait: they are its own.
        if each.which != which or message.place is not None:
            continue
        room -= len(message.payload or "")
        if len(ahead) == limit or room < 0:
            break
        ahead.append(message.as_wake())
    return tuple(ahead)


def take(
    picture: Picture,
    taking: Taking,
    wait: Wait,
    activity: Activity | None,
    message: Message,
    now: Now,
    job: JobFacts,
) -> tuple[Write, ...] | Refusal:
    """Give the wait its result and the message its digits; a driver's step 2 comes with the segment's end."""
    drives = message.guid == taking.driver and message.ledger > 0
    before = OPENED if activity is None else activity.ledger
    if drives:
        ledger, guid = worked(before, message.ledger)
    else:
        found = entered(job.job_id, wait.name, before, message.ledger)
        if isinstance(found, Refusal):
            return found
        ledger, guid = settled(found.activity, found.guid, closes=False)
    state, result, error, row_print = _as_kept(picture, wait, activity, message)
    attempt = taking.fence.attempt
    payload = step_payload(wait.name, wait.occurrence, state, ledger, result, error, None, row_print)
    fact = Fact(taking.chain, wait.kind, taking.at, attempt, payload)
    answered: Write
    if activity is None:
        place = place_of(taking.dimension, wait)
        row = Activity(job.job_id, *place, wait.kind, state, ledger, 1, attempt)
        answered = InsertActivity(row, taking.at, fact, result, error)
    else:
        place = activity.place
        row = activity._replace(state=state, ledger=ledger, attempt=attempt, rev=activity.rev + 1)
        answered = MoveActivity(row, activity.rev, taking.at, fact, result, error)
    acked_at = None if drives else now.wall
    done = message._replace(dimension=place[0], occurrence=place[2], ledger=guid, acked_at=acked_at)
    marked: Write = MoveMessage(done, message.ledger)
    if activity is not None and not drives:
        if job.semaphore < _BESIDE:
            return broken(
                job.job_id, f"{wait.name} is open beside what drives it, and its semaphore says not"
            )
        after = job._replace(semaphore=job.semaphore - 1, rev=job.rev + 1)
        marked = MoveSemaphore(after, job.rev, -1, False, done, message.ledger, None, 0)
    losers = () if message.kind == "timer" else _loser(picture, place, now)
    return (answered, marked, *losers)


def _as_kept(picture: Picture, wait: Wait, activity: Activity | None, message: Message) -> Taken:
    """Return how the row of a wait ends with a message."""
    if wait.kind in ("remote", "effect"):
        return ended_by(picture, activity, message)
    said = "null" if message.payload is None else message.payload
    if activity is not None and wait.kind == "group":
        return Taken(ANSWERED, said, row=of_group(activity.threshold, activity.mode))
    return Taken(ANSWERED, said)


def _loser(picture: Picture, place: Place, now: Now) -> tuple[Write, ...]:
    """Return what acknowledges the timer that lost the race for a wait; it never enters."""
    timer = picture.messages.get(timer_of(picture.job.job_id, place))
    if timer is None or timer.acked_at is not None:
        return ()
    return (MoveMessage(timer._replace(acked_at=now.wall), timer.ledger),)


def _open(
    picture: Picture, job: JobFacts, request: Await | AskRemotes, now: Now, *, but: int | None = None
) -> tuple[int, JobFacts, list[Write]]:
    """Open those waits that are not open yet, all but one that is answered; return how many, and how."""
    writes: list[Write] = []
    opened = 0
    for index, wait in enumerate(request.waits):
        place = place_of(request.dimension, wait)
        if place in picture.activities or index == but:
            continue
        opened += 1
        if wait.asks is not None:
            writes += open_step(picture, place, wait.asks, request.fence.attempt, now)
            continue
        assert isinstance(request, Await), "a segment that goes on asks for remote steps alone"
        row = Activity(job.job_id, *place, wait.kind, BEGUN, OPENED, 1, request.fence.attempt)
        writes.append(InsertActivity(row, now.wall, None, None))
        if wait.due_at is not None:
            timer = _timer(job, place, now.moment(wait.due_at, request.fact.at), now)
            writes.append(InsertMessage(timer))
            job = job._replace(inbox_end=timer.arrived, inbox_at=timer.created_at)
    return opened, job, writes


def _suspend(picture: Picture, request: Await, now: Now) -> Decision:
    """Open what is not open yet, count what is met once more, and end the attempt until something comes."""
    fence = request.fence
    driver = driver_of(picture, request.driver)
    if isinstance(driver, Refusal):
        return driver
    opened, job, writes = _open(picture, picture.job, request, now)
    for wait in request.waits:
        activity = picture.activities.get(place_of(request.dimension, wait))
        if activity is None or wait.kind in _COUNTED_ELSEWHERE:
            continue
        _verdict, ledger = first_entry(activity.ledger)
        if ledger != activity.ledger:
            again = activity._replace(ledger=ledger, rev=activity.rev + 1)
            writes.append(MoveActivity(again, activity.rev, now.wall, None, None))
    delta = settle_delta(starts=driver.enters_root, consumed=driver.is_consumed, opened=opened)
    if delta is None:
        job = job._replace(semaphore=job.semaphore + opened)
    else:
        settling = settle(job, driver, delta, closes=False, at=now.wall)
        if isinstance(settling, Refusal):
            return settling
        job = settling.job
        writes += settling.writes
    timers = [_due(picture, place_of(request.dimension, wait), writes) for wait in request.waits]
    due_at = min((due for due in timers if due is not None), default=None)
    after = job._replace(ready_at=due_at, rev=job.rev + 1)
    ended = MoveAttempt(*fence, RUNNING, SUSPENDED, AbortReason.SUSPENDED, charged=False, live=True)
    return Plan(
        (*writes, ended, MoveJob(after, job.rev, request.fact, last_opened(writes))),
        None,
        wakes=due_at is not None,
    )


def _due(picture: Picture, place: Place, writes: list[Write]) -> int | None:
    """Return when the timer of a wait answers it, be it there already or about to be written."""
    guid = timer_of(picture.job.job_id, place)
    for write in writes:
        if type(write) is InsertMessage and write.message.guid == guid:
            return write.message.due_at
    timer = picture.messages.get(guid)
    return timer.due_at if timer is not None and timer.acked_at is None else None


def deliver(pictures: Pictures, request: Deliver, now: Now) -> Decision:
    """Store a message and make its job due, or say why not."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return Plan((), Delivered.ABSENT)
    job = picture.job
    if request.guid in picture.messages:
        return Plan((), Delivered.KNOWN)
    named_so = [each for each in picture.open_activities() if each.name == request.name]
    awaited = [each for each in named_so if each.kind in TAKERS[request.kind]]
    named = next((each for each in awaited if is_complete(each.ledger)), None)
    verdict = decide_deliver(
        job_final=job.state in JOB.final,
        names_activity=request.kind != "signal",
        leg1_complete=named is not None,
        wait_open=bool(awaited),
        attempt_live=picture.lease is not None,
    )
    place: tuple[int, str, int | None] = (0, request.name, None)
    if named is not None and request.kind != "signal":
        place = (named.dimension, request.name, named.occurrence)
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    message = Message(request.guid, job.job_id, *place, request.kind, request.payload, None, 0, 0, *inbox)
    match verdict:
        case Delivery.DROP:
            return Plan((), Delivered.DROPPED)
        case Delivery.REFUSE:
            return Plan((), Delivered.REFUSED)
        case Delivery.KEEP:
            return Plan((InsertMessage(message),), Delivered.KEPT)
        case Delivery.WAKE:
            writes = (InsertMessage(message), *wake(job, now))
            woke = len(writes) > 1
            return Plan(writes, Delivered.WOKE if woke else Delivered.KEPT, wakes=woke)
    assert_never(verdict)
