"""How a flush takes its batch apart: bundles written by kind, and bundles decided from pictures.

A plain bundle of one primitive is written with the others of its kind, in the order of `ORDER`. For the
rest this module says what they want to see and what comes of them. A bundle that is refused plans nothing
and takes no place; the others do not notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tallystick.core.deciding import decide, see
from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EndEffect,
    RestEffect,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.lifecycles import STEP, StepState
from tallystick.core.pictures import START, Now, Pictures
from tallystick.core.plans import (
    DropActivities,
    MoveActivity,
    MoveMessage,
    MoveSemaphore,
    Plan,
    Refusal,
    Write,
)
from tallystick.core.remote.requests import place_in_workflow
from tallystick.core.verbs.wants import Wants, wanted, wanted_of_each
from tallystick.errors import TallyError
from tallystick.store.api import (
    AskRemotes,
    Await,
    Bundle,
    CancelJob,
    CancelUnclaimed,
    ClaimJobs,
    Cycle,
    Deliver,
    EndAttempt,
    EndJob,
    HoldJob,
    Outcome,
    Primitive,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    RenewLeases,
    ResumeJob,
    SetValue,
    Spawn,
    SubmitJob,
    SubmitJobs,
    TakeAnswer,
)

NAMES: Final[dict[type[Primitive], str]] = {
    Await: "await",
    TakeAnswer: "take",
    Spawn: "spawn",
    Cycle: "cycle",
    CancelJob: "cancel",
    CancelUnclaimed: "cancel",
    Deliver: "deliver",
    HoldJob: "hold",
    ResumeJob: "resume",
    EndJob: "end_job",
    RecordStep: "step",
    RecordEvent: "event",
    SetValue: "value",
    EndAttempt: "end_attempt",
    ReclaimAttempt: "reclaim",
    CallEffect: "intent",
    EndEffect: "result",
    RestEffect: "rest",
    DoubtEffect: "doubt",
    TakeProbe: "probe",
    SettleEffect: "settle",
}
"""Every request that a verb decides, and the name of its crash points. Plain ones are also written in lists,
without a look."""

_PLANNED: Final = frozenset({*NAMES, AskRemotes})
_DROPPED: Final = STEP.follow(StepState.IN_PROGRESS, "drop").target


def is_planned(bundle: Bundle) -> bool:
    """Tell whether every request of a bundle can be decided from pictures."""
    return _PLANNED.issuperset(map(type, bundle)) or all(
        type(primitive) in _PLANNED or place_in_workflow(primitive) is not None for primitive in bundle
    )


def kinds_of(bundles: Iterable[Bundle]) -> list[str]:
    """Return the names of the crash points around these; remote steps have none."""
    return sorted({NAMES[type(each)] for bundle in bundles for each in bundle if type(each) in NAMES})


def wants_of(bundle: Bundle, *, whole: bool = False) -> list[Wants]:
    """Return what the requests of a bundle want to see; signals behind those that it takes itself.

    A `whole` look leaves no child out that is to be born, and no remote step that is open.
    """
    if type(bundle[0]) is CancelUnclaimed:
        return wanted_of_each(bundle[0])
    wants = [wanted(primitive) for primitive in bundle]  # type: ignore[arg-type]  # only these come here
    takes = 0
    for number, primitive in enumerate(bundle):
        if type(primitive) is TakeAnswer:
            takes += 1
        elif takes and wants[number].signals:
            wants[number] = wants[number]._replace(ahead=wants[number].ahead + takes)
    if not whole:
        return wants
    wants = [want._replace(effects=True) for want in wants]
    births = (primitive.children for primitive in bundle if type(primitive) is Spawn)
    children = tuple(child.job_id for born in births for child, _fact in born)
    return [want._replace(children=children + want.children, remotes=True) for want in wants]


class Decided(NamedTuple):
    """What came of the bundles of a flush."""

    outcomes: dict[int, Outcome | BaseException]
    # Bundles that want to see more before they are decided.
    again: list[int]
    writes: list[Write]
    # Whether a worker may find something to claim afterwards.
    wakes: bool
    # The requests that were refused, and why.
    refused: list[tuple[Primitive, TallyError]]


def decide_bundles(
    pictures: Pictures, bundles: Mapping[int, Bundle], wants: Mapping[int, Sequence[Wants]], now: Now
) -> Decided:
    """Decide bundles in their order, from one look at all that they want to see."""
    outcomes: dict[int, Outcome | BaseException] = {}
    again: list[int] = []
    writes: list[Write] = []
    wakes = False
    refused: list[tuple[Primitive, TallyError]] = []
    shared = _shared(pictures, wants.values())
    for index, bundle in bundles.items():
        jobs = {want.job_id for want in wants[index]}
        # The last one to look at its jobs leaves no pictures for others.
        last = shared.isdisjoint(jobs) and not _concerns_keys(pictures, wants[index])
        seen = pictures if last or len(bundle) == 1 else pictures.overlay(jobs)
        accepted: list[Write] = []
        stirs = False
        for primitive in bundle:
            decision = decide(seen, primitive, now)  # type: ignore[arg-type]  # only these come here
            if type(decision) is Plan:
                planned, outcomes[index], woken = decision
                stirs = stirs or woken
                accepted += expanded(seen, planned, now, last=last and primitive is bundle[-1])
            elif isinstance(decision, Refusal):
                outcomes[index] = decision.error
                refused.append((primitive, decision.error))
                break
            else:
                outcomes.pop(index, None)
                again.append(index)
                break
        else:
            writes += accepted if len(bundle) == 1 else written_once(accepted)
            wakes = wakes or stirs
            if seen is not pictures:
                pictures.update(seen)
                pictures.occupied, pictures.waiters = seen.occupied, seen.waiters
    return Decided(outcomes, again, writes, wakes, refused)


def written_once(writes: list[Write]) -> list[Write]:
    """Return the writes of a bundle without step 1 of a message whose step 2 is among them.

    Both become durable at once, and the row of the message has the digits of the last.
    """
    done = {write.message.guid for write in writes if type(write) is MoveSemaphore}
    begun = {
        write.message.guid: write.digits
        for write in writes
        if type(write) is MoveMessage and write.message.guid in done
    }
    if not begun:
        return writes
    once: list[Write] = []
    for write in writes:
        if type(write) is MoveSemaphore and write.message.guid in begun:
            once.append(write._replace(digits=begun[write.message.guid]))
        elif type(write) is not MoveMessage or write.message.guid not in begun:
            once.append(write)
    return once


def _concerns_keys(pictures: Pictures, wants: Sequence[Wants]) -> bool:
    """Tell whether a bundle may take or free the key of an effect: other jobs may wait for that."""
    for want in wants:
        if want.keys:
            return True
        picture = pictures.get(want.job_id)
        if picture is not None and picture.effects:
            return True
    return False


def _shared(pictures: Pictures, wants: Iterable[Sequence[Wants]]) -> set[str]:
    """Return the jobs at which more than one bundle looks: of its own, or of a child, which looks at both."""
    seen: set[str] = set()
    shared: set[str] = set()
    for asked in wants:
        own = {want.job_id for want in asked}
        shared |= seen & own
        seen |= own
    for job_id, picture in pictures.items():
        home = pictures.get(picture.job.parent_job_id or "")
        # One that has ended counts no child: the ends of its children say nothing to each other.
        if home is not None and home.job.completed_at is None:
            shared |= {job_id, home.job.job_id}
    return shared


def expanded(pictures: Pictures, writes: Sequence[Write], now: Now, *, last: bool) -> Sequence[Write]:
    """Return writes with what is dropped as rows: a list would meet those that this flush moves as well.

    Each write is put into the pictures before the next: what is dropped keeps the digits it was just given.
    Nothing looks at what the `last` one leaves.
    """
    if last and DropActivities not in set(map(type, writes)):
        return writes
    rows: list[Write] = []
    for write in writes:
        if isinstance(write, DropActivities):
            for activity in pictures[write.job_id].open_activities():
                dropped = activity._replace(state=_DROPPED, rev=activity.rev + 1)
                rows.append(MoveActivity(dropped, activity.rev, now.wall, None, None))
        else:
            rows.append(write)
        see(pictures, (write,))
    return rows


# The order in which a batch writes. Renewals go before everything else, and claims come last, because they
# may take what this batch has just submitted or released.
ORDER: Final[tuple[type[Primitive], ...]] = (
    RenewLeases,
    RecordStep,
    RecordEvent,
    EndAttempt,
    EndJob,
    SubmitJob,
    SubmitJobs,
    ClaimJobs,
)


# Bundles that are written by kind: the kind, and where they stand in the batch.
Kind: TypeAlias = tuple[type[Primitive], list[int]]

_GROUPED: Final = frozenset(ORDER)

# A bundle of one of these needs no second look: nothing in it decides how it is written.
_ALWAYS_GROUPED: Final = frozenset({RenewLeases, RecordStep, RecordEvent, SubmitJob, SubmitJobs, ClaimJobs})

# Bundles of these two travel with the others: the one is written before the other anyway.
_PAIRS: Final = frozenset((RecordStep, last) for last in (EndJob, EndAttempt))


def grouped(batch: Sequence[Bundle], *, children: bool = False) -> tuple[list[int], list[Kind]]:
    """Return the indexes of bundles to decide or to write alone, and of the others by kind in their order.

    A step and the ending it came with stand under both kinds. The ends of jobs that a message woke touch
    other rows too; those of `children` as well, which not every store writes by kind.
    """
    plain: dict[type[Primitive], list[int]] = {}
    alone: list[int] = []
    for index, bundle in enumerate(batch):
        last = bundle[-1]
        kind = type(last)
        if len(bundle) == 1 and kind in _ALWAYS_GROUPED:
            if kind in plain:
                plain[kind].append(index)
            else:
                plain[kind] = [index]
            continue
        if kind not in _GROUPED or (type(last) is EndJob and _touches_others(last, children=children)):
            alone.append(index)
        elif len(bundle) == 1:
            plain.setdefault(kind, []).append(index)
        elif len(bundle) == 2 and (type(bundle[0]), kind) in _PAIRS:
            plain.setdefault(type(bundle[0]), []).append(index)
            plain.setdefault(kind, []).append(index)
        else:
            alone.append(index)
    return alone, [(kind, plain[kind]) for kind in ORDER if kind in plain]


def _touches_others(end: EndJob, *, children: bool) -> bool:
    """Tell whether an end closes more than what began its segment, or more than its own job."""
    return end.waited or end.driver != START or (end.parent is not None and not children)


def parts_of(bundles: Iterable[Bundle], kind: type[Primitive]) -> list[Any]:
    """Return the part of each bundle that is written with others of this kind."""
    return [first if type(first := bundle[0]) is kind else bundle[-1] for bundle in bundles]


def ending_in_lists(batch: Sequence[Bundle], groups: Sequence[Kind]) -> Iterable[str]:
    """Return the jobs whose rows are moved by lists: they are locked with all others, in one order."""
    for kind, indexes in groups:
        if kind in (EndJob, EndAttempt):
            for part in parts_of([batch[index] for index in indexes], kind):
                yield str(part.fence.job_id)


def without_last_steps(batch: Sequence[Bundle], groups: Sequence[Kind]) -> list[Kind]:
    """Return groups without steps that come with the end of their job: that statement has them."""
    kept = [
        (kind, [index for index in indexes if kind is not RecordStep or type(batch[index][-1]) is not EndJob])
        for kind, indexes in groups
    ]
    return [(kind, indexes) for kind, indexes in kept if indexes]


def merged_claims(requests: Sequence[ClaimJobs]) -> list[tuple[ClaimJobs, list[int]]]:
    """Return one search for all claims of each worker, and whose they are; its slots ask one by one."""
    same: dict[ClaimJobs, list[int]] = {}
    for index, request in enumerate(requests):
        same.setdefault(request._replace(limit=0), []).append(index)
    return [
        (whole._replace(limit=sum(requests[index].limit for index in indexes)), indexes)
        for whole, indexes in same.items()
    ]
