"""Groups of children: one activity in the parent, one countdown for each child, one closer.

A group's leg 1 is complete when all of its children are durable. A child that ends before that is not
forgotten: its message waits, and the bundle that completes the leg enters it, in the order of arrival.
"""

from __future__ import annotations

from tallystick.core.audit.fingerprints import births
from tallystick.core.ledger import marks
from tallystick.core.ledger.decisions import Verdict, count_down
from tallystick.core.ledger.marks import ENTERED, complete, first_entry, is_complete
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import DEPTH_MAX
from tallystick.core.pictures import (
    FAIL_FAST,
    Activity,
    JobFacts,
    Message,
    Now,
    Picture,
    Pictures,
    child_of,
    group_place,
    join_of,
)
from tallystick.core.plans import (
    NO_VALUES,
    CountChild,
    Decision,
    InsertActivity,
    InsertChild,
    InsertMessage,
    MoveActivity,
    MoveJob,
    MoveMessage,
    Plan,
    Refusal,
    Relook,
    Write,
)
from tallystick.core.requests import Spawn
from tallystick.core.tuples import make
from tallystick.core.values import Fact, Group, NewJob
from tallystick.core.verbs.protocol.remote import wake
from tallystick.core.verbs.settling import broken, full, stale, turned_away
from tallystick.core.verbs.waiting import BEGUN
from tallystick.errors import LedgerError, TooDeep


def spawn(pictures: Pictures, request: Spawn, now: Now) -> Decision:
    """Open a group unless it is open, insert the children that are missing, and tell if none was."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    job, group = picture.job, picture.activities.get(group_place(str(request.group)))
    known = _known(picture, group, request)
    if known is not None:
        return known
    children = tuple(child.job_id for child, _fact in request.children)
    born = _born(picture, children)
    if born is None:
        return Relook(job.job_id, children)
    writes: list[Write] = []
    if group is None:
        group, job, opening = _opened(job, request)
        writes += opening
    else:
        again = _come_again(group, request.fence.attempt, now)
        if isinstance(again, Refusal):
            return again
        group, entry = again
        writes += entry
    step = str(request.group)
    unborn = [
        (_as_child(child, job, now), fact) for child, fact in request.children if child.job_id not in born
    ]
    texts = births([child for child, _fact in unborn], step)
    for (child, (chain, kind, at, attempt, _text)), text in zip(unborn, texts, strict=True):
        writes.append(make(InsertChild, (child, make(Fact, (chain, kind, at, attempt, text)), step)))
    if request.group.child_id(job.job_id, request.total - 1) in children:
        completed = _completed(picture, job, group, request.group, now)
        if isinstance(completed, Refusal):
            return completed
        writes += completed
    return Plan(tuple(writes), False, wakes=True)


def _known(picture: Picture, group: Activity | None, request: Spawn) -> Plan | Refusal | None:
    """Return the answer where nothing is to be born: the job is to end, all are there, or it is too deep."""
    job = picture.job
    if job.state == JobState.CANCELLING:
        return Plan((), JobState.CANCELLING)
    if group is not None and _all_born(picture, group, request):
        return Plan((), True)
    return Refusal(_too_deep(job.job_id)) if depth_of(job.job_id) >= DEPTH_MAX else None


def _as_child(child: NewJob, parent: JobFacts, now: Now) -> NewJob:
    """Return a child as it is born: unless it is detached, it has no more time than its parent has left."""
    deadline_at = child.deadline_at
    if not child.detached and parent.deadline_at is not None:
        inherited = child.created_at + parent.deadline_at - now.wall
        deadline_at = inherited if deadline_at is None else min(deadline_at, inherited)
    if (child.parent_job_id, child.deadline_at) == (parent.job_id, deadline_at):
        return child
    return child._replace(parent_job_id=parent.job_id, deadline_at=deadline_at)


def depth_of(job_id: str) -> int:
    """Return how many parents a job has above it: each has put three numbers behind its own identifier.

    >>> depth_of("01a1e109-dad7"), depth_of(Group(0, "gather", 1).child_id("01a1e109-dad7", 5))
    (0, 1)
    """
    return job_id.count(".") // 3


def _too_deep(job_id: str) -> TooDeep:
    return TooDeep(
        f"a job has at most {DEPTH_MAX} parents above it: does this workflow call itself without an end? "
        "A loop is written with again(...), and a detached job counts from the beginning",
        job_id=job_id,
        depth_max=DEPTH_MAX,
    )


def _come_again(group: Activity, attempt: int, now: Now) -> tuple[Activity, list[Write]] | Refusal:
    """Count that another attempt has come to a group whose children are not all born."""
    if group.state != BEGUN:
        return broken(group.job_id, f"{group.name} is over, and not all of its children were born")
    if group.attempt == attempt:
        return group, []
    verdict, ledger = first_entry(group.ledger)
    if verdict is Verdict.ESCALATE:
        return full(group.job_id, group.name)
    after = group._replace(ledger=ledger, attempt=attempt, rev=group.rev + 1)
    return after, [MoveActivity(after, group.rev, now.wall, None, None)]


def _born(picture: Picture, children: tuple[str, ...]) -> frozenset[str] | None:
    """Return which of these children exist; they are born in order, so the ends tell. None: look at all."""
    if not children:
        return frozenset()
    first, last = children[0] in picture.children, children[-1] in picture.children
    if first == last:
        return frozenset(children) if first else frozenset()
    return picture.children if picture.asked.issuperset(children) else None


def _all_born(picture: Picture, group: Activity, request: Spawn) -> bool:
    """Tell whether all children are durable; in an older form that is so when the last one is there."""
    if picture.job.ledger_form == 0:
        return request.group.child_id(picture.job.job_id, request.total - 1) in picture.children
    return is_complete(group.ledger)


def _opened(job: JobFacts, request: Spawn) -> tuple[Activity, JobFacts, list[Write]]:
    mode = FAIL_FAST if request.fail_fast else None
    dimension, name, occurrence = request.group
    group = Activity(
        job.job_id,
        dimension,
        name,
        occurrence,
        "group",
        BEGUN,
        ENTERED,
        1,
        request.fence.attempt,
        request.total,
        request.threshold,
        0,
        mode,
    )
    after = job._replace(semaphore=job.semaphore + 1, rev=job.rev + 1)
    return (
        group,
        after,
        [InsertActivity(group, request.at, None, None), MoveJob(after, job.rev, None, NO_VALUES)],
    )


def _completed(
    picture: Picture, job: JobFacts, group: Activity, named: Group, now: Now
) -> list[Write] | Refusal:
    """Complete leg 1 in the bundle of the last children, and count those that have ended meanwhile."""
    if is_complete(group.ledger):
        return []  # an older form: it was complete from the beginning
    whole = group._replace(ledger=complete(group.ledger), rev=group.rev + 1)
    writes: list[Write] = [MoveActivity(whole, group.rev, now.wall, None, None)]
    early = [
        message
        for message in picture.messages.values()
        if message.kind == "child" and message.place == group.place and message.acked_at is None
    ]
    for message in sorted(early, key=lambda each: each.arrived):
        if _is_done(whole):
            writes.append(MoveMessage(message._replace(acked_at=now.wall), message.ledger))
            continue
        counted = _counted(whole, message, message.ledger, now)
        if isinstance(counted, Refusal):
            return counted
        whole, written = counted
        writes += written
    if whole.is_closed:
        writes += _wake_parent(picture, (job.job_id, str(named)), now)
    return writes


def child_ended(
    pictures: Pictures, child_id: str, parent: tuple[str, str], state: str, now: Now
) -> tuple[Write, ...]:
    """Return what a child's end means for its parent: it is counted, or waits, or comes too late."""
    picture = pictures.get(parent[0])
    if picture is None:
        return ()
    job, place = picture.job, group_place(parent[1])
    group = picture.activities.get(place)
    about = (child_of(child_id), job.job_id, *place, "child", state)
    word = make(Message, (*about, None, 0, 0, now.wall, 0, None))
    if job.completed_at is not None or group is None or group.state != BEGUN or _is_done(group):
        return (InsertMessage(word._replace(acked_at=now.wall)),)
    if not is_complete(group.ledger):
        return (_waits(job, word),)
    counted = _counted(group, word, None, now)
    if isinstance(counted, Refusal):
        # The group can count no further entry, or its digits are wrong: its parent is woken, and finds that.
        return (_waits(job, word), *_wake_parent(picture, parent, now))
    after, writes = counted
    if after.is_closed:
        writes += _wake_parent(picture, parent, now)
    return tuple(writes)


def _waits(job: JobFacts, word: Message) -> InsertMessage:
    """Return how the end of a child is written that its group does not count yet: in the inbox."""
    created_at = max(word.created_at, job.inbox_at)
    return InsertMessage(word._replace(created_at=created_at, arrived=job.inbox_end + 1))


def _is_done(group: Activity) -> bool:
    return not group.semaphore or group.semaphore <= (group.threshold or 0)


def _counted(
    group: Activity, word: Message, digits: int | None, now: Now
) -> tuple[Activity, list[Write]] | Refusal:
    """Return a group that is not done as it has counted a child, and how that is written."""
    assert group.semaphore is not None, "a group that is not done counts"
    semaphore, hit = count_down(group.semaphore, -1, group.threshold or 0)
    try:
        verdict, ledger, guid = marks.counted(group.ledger, word.ledger, closes=hit)
    except LedgerError as error:
        return broken(group.job_id, str(error))
    if verdict is not Verdict.RUN:
        return turned_away(verdict, group.job_id, group.name)
    failed = (group.failed or 0) + (word.payload != JobState.SUCCEEDED)
    after = group._replace(ledger=ledger, semaphore=semaphore, failed=failed, rev=group.rev + 1)
    done = word._replace(ledger=guid, acked_at=now.wall)
    return after, [make(CountChild, (after, group.rev, hit, done, digits))]


def _wake_parent(picture: Picture, parent: tuple[str, str], now: Now) -> list[Write]:
    """Leave the word that a group is closed, once, and make its parent due if no worker runs it."""
    job = picture.job
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1)
    guid = join_of(job.job_id, parent[1])
    if guid in picture.messages:
        return []
    word = Message(guid, job.job_id, *group_place(parent[1]), "resume", None, None, 0, 0, *inbox, None)
    woken = wake(job, now) if picture.lease is None else ()
    return [InsertMessage(word), *woken]
