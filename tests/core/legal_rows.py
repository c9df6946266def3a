"""Random rows that a database lets stand, and requests about them: what the checks of the schema allow.

A check knows ranges and lists of words, not histories, so digits may contradict each other, a semaphore may
count what is not there, and a message may name what has never begun. About half of what is drawn is as a
history would have left it; otherwise few requests would come further than their first guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from tallystick.core.chain import Chain
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import JOB, STEP, JobState
from tallystick.core.pictures import (
    AGAIN,
    CANCEL,
    START,
    Activity,
    JobFacts,
    Lease,
    LostAttempts,
    Message,
    Now,
    Picture,
    Pictures,
    Place,
    cancel_of,
    child_of,
    join_of,
    place_of,
    timer_of,
    turn_of,
)
from tallystick.core.remote.rows import ProtocolJob
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.wants import Planned
from tallystick.store.api import (
    AskRemotes,
    Asks,
    Await,
    CancelJob,
    Cycle,
    Deliver,
    EndAttempt,
    EndJob,
    Fact,
    Fence,
    Group,
    HoldJob,
    NewJob,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    ResumeJob,
    SetValue,
    Spawn,
    TakeAnswer,
    Wait,
    Wake,
)
from tests.core import legal_effects
from tests.core.legal_effects import put_effect

T = TypeVar("T")

NOW = Now(1_000)
JOB_ID, HOME = "j", "p"
GROUP = Group(0, "gather", 1)
GATHER: Place = (0, "gather", 1)
PLACES: tuple[Place, ...] = ((0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1))
TOTAL = 3

# Digits that histories have written; those in front are of what is open.
CALM = 3
ACTIVITIES = (
    1_100_000_000_001,
    2_100_000_000_001,
    1_110_000_000_001,
    1_100_000_000_000,
    1_000_000_000_000,
    1_111_000_000_001,
    1_111_000_000_002,
    1_111_100_000_001,
    999_000_000_000_000,
    999_100_000_000_000,
    1_111_099_999_999,
)
GUIDS = (1, 10_000_000_001, 0, 11_000_000_001, 111_100_000_001, 2, 10_000_000_002)

INSTANTS = (None, 500, 1_000, 2_000)


class Chance:
    """What is drawn, the same for the same number."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        # Whether most of what is drawn fits together.
        self._calm = self._random.random() < 0.7

    def one_of(self, items: Sequence[T]) -> T:
        return items[int(self._random.random() * len(items))]

    def rarely(self) -> bool:
        return self._random.random() < (0.03 if self._calm else 0.2)

    def often(self) -> bool:
        return self._random.random() < 0.6

    def some_of(self, items: Sequence[T], most: int) -> list[T]:
        return self._random.sample(list(items), min(len(items), self.below(most + 1)))

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def instant(self) -> int | None:
        return self.one_of(INSTANTS)

    def digits(self, kind: type[ActivityLedger | GuidLedger], usual: Sequence[int]) -> int:
        """Return a ledger that the checks let pass: one of a history, or any, often at the top of a field."""
        if self._calm and not self.rarely():
            return self.one_of(usual[:CALM])
        if self.often():
            return self.one_of(usual)
        return sum(self.one_of((0, min(1, field.top), field.top)) * field.weight for field in kind.FIELDS)

    def activity(self) -> int:
        return self.digits(ActivityLedger, ACTIVITIES)

    def guid(self) -> int:
        return self.digits(GuidLedger, GUIDS)


def job_row(chance: Chance, name: str) -> JobFacts:
    state = JobState.IN_PROGRESS if chance.often() else chance.one_of(JOB.states)
    final = state in JOB.final
    child = name == JOB_ID and chance.often()
    return JobFacts(
        job_id=name,
        state=str(state),
        attempt=chance.below(4),
        dimension=chance.below(2),
        ready_at=None if final else chance.instant(),
        hold=chance.one_of([hold.value for hold in Hold]) if chance.rarely() else None,
        semaphore=chance.below(5),
        root_ledger=chance.activity(),
        start_ledger=chance.guid(),
        start_acked_at=chance.one_of((None, 500)),
        cancel_at=chance.instant(),
        completed_at=500 if final else None,
        rev=1 + chance.below(3),
        ledger_form=chance.one_of((1, 1, 0)),
        parent_job_id=HOME if child else None,
        parent_step=str(GROUP) if child else None,
        inbox_end=9,
        inbox_at=chance.one_of((900, 1_100)),
    )


def activity_row(chance: Chance, name: str, place: Place) -> Activity:
    state = str(chance.one_of(STEP.states)) if chance.rarely() else "IN_PROGRESS"
    about = (state, chance.activity(), 1 + chance.below(3), chance.below(3))
    if place != GATHER:
        kinds = ("sleep", "effect", "remote", "step")
        return Activity(name, *place, chance.one_of(kinds) if chance.rarely() else "wait", *about)
    counts = (
        chance.one_of((None, 0, 1, 2, 2, 3)),
        chance.one_of((None, -1, 0, 0, 0, 1)),
        chance.one_of((None, 0, 1)),
    )
    return Activity(name, *place, "group", *about, *counts, chance.one_of((None, "fail_fast")))


def words(name: str) -> list[tuple[str, str, tuple[int, str, int | None]]]:
    """Return the messages that histories leave: identifier, kind and place."""
    timers = [(timer_of(name, place), "timer", place) for place in PLACES[:3]]
    signals = [(f"{name}-s{n}", "signal", (0, called, None)) for n, called in enumerate(("a", "a", "b"))]
    taken = [(f"{name}-t{n}", "signal", place) for n, place in enumerate(PLACES[:3])]
    joins = [(join_of(name, str(GROUP)), "resume", GATHER)]
    ends = [(child_of(GROUP.child_id(name, n)), "child", GATHER) for n in range(TOTAL)]
    of_root = [(turn_of(name, 1), "resume", (1, AGAIN, 1)), (cancel_of(name), "resume", (0, CANCEL, 1))]
    return [*timers, *signals, *taken, *joins, *ends, *of_root]


KINDS_OF_MESSAGES = ("start", "signal", "timer", "child", "result", "resume")
STRANGE = (*PLACES, GATHER, (0, "a", None), (0, AGAIN, None))


def message_row(
    chance: Chance, name: str, n: int, word: tuple[str, str, tuple[int, str, int | None]]
) -> Message:
    guid, kind, place = word
    if chance.rarely():
        kind, place = chance.one_of(KINDS_OF_MESSAGES), chance.one_of(STRANGE)
    payload = chance.one_of((None, "SUCCEEDED", "FAILED_FINAL")) if kind == "child" else None
    due_at = chance.instant() if kind == "timer" else None
    acked_at = chance.one_of((None,) * 7 + (600,))
    return Message(
        guid, name, *place, kind, payload, due_at, chance.guid(), chance.below(2), 100 + n, n, acked_at
    )


def lease_row(chance: Chance, guids: list[str]) -> Lease | None:
    if not chance.often() and chance.often():
        return None
    status = chance.one_of(("LEASED", "COMMITTED")) if chance.rarely() else "IN_PROGRESS"
    live = chance.often() or chance.often()
    return Lease(1, "lease", status, live, chance.one_of((START, *guids)) if chance.often() else "")


def drawn_pictures(chance: Chance) -> Pictures:
    """Draw a job, and beside it the one that it may be a child of."""
    found = Pictures()
    for name in (JOB_ID, HOME):
        picture = found[name] = Picture(job_row(chance, name))
        for place in chance.some_of((*PLACES, GATHER), 4):
            picture.activities[place] = activity_row(chance, name, place)
        for n, word in enumerate(chance.some_of(words(name), 4)):
            picture.messages[word[0]] = message_row(chance, name, n, word)
        picture.lease = lease_row(chance, list(picture.messages))
        picture.whole = chance.often()
        # A first look asks for the ends of a bundle, a second one for all.
        asked = range(TOTAL) if picture.whole else (0, TOTAL - 1)
        picture.asked = frozenset(GROUP.child_id(name, n) for n in asked)
        born = range(chance.below(TOTAL + 1))
        # From what was drawn: another draw here would make all other examples other ones.
        job = picture.job
        late = job.cancel_at if job.rev > 1 else None
        picture.job = job._replace(deadline_at=late, code=None if late is None else "DEADLINE")
        picture.has_open_children = job.rev > 1
        picture.children = frozenset(GROUP.child_id(name, n) for n in born if n in asked)
        if chance.often():
            picture.job = picture.job._replace(semaphore=counted(picture))
    return found


def counted(picture: Picture) -> int:
    """Return what the semaphore of a job says when it counts what is open."""
    owed = sum(message.is_owed for message in picture.messages.values())
    return len(picture.open_activities()) + owed + (picture.job.start_acked_at is None)


FENCE = Fence(JOB_ID, 1, "lease")
WAITS = (
    Wait("wait", "a", 1, None),
    Wait("wait", "a", 2, 995),
    Wait("wait", "b", 1, 5_000),
    Wait("sleep", "b", 1, 985),
    Wait("group", "gather", 1, None),
)


def _fence(chance: Chance) -> Fence:
    return chance.one_of((Fence(JOB_ID, 1, "other"), Fence(JOB_ID, 2, "lease"))) if chance.rarely() else FENCE


def _fact() -> Fact:
    return Fact(Chain(JOB_ID), "word", 990, 1, "{}")


def _child(n: int) -> tuple[NewJob, Fact]:
    name = GROUP.child_id(JOB_ID, n)
    job = NewJob(name, "{}", 990, None, 990, "default", "workflow", "flow", "", "default", 5, "{}")
    return job, Fact(Chain(name), "submit", 990, 0, "{}")


def _driver(chance: Chance, picture: Picture) -> str:
    return chance.one_of((START, START, "", *picture.messages))


def _await(chance: Chance, picture: Picture) -> Await:
    some = {wait[1:3]: wait for wait in (chance.one_of(WAITS), chance.one_of(WAITS))}
    waits = tuple(some.values())[: 1 + chance.below(2)]
    return Await(_fence(chance), _driver(chance, picture), chance.below(2), waits, _fact(), chance.often())


def _ask(chance: Chance, picture: Picture) -> AskRemotes:
    job = picture.job
    about = (job.state, job.rev, job.semaphore, job.root_ledger, job.start_ledger, "p")
    picture.home = ProtocolJob(
        job.job_id, "default", *about, None, None, None, None, "{}", "{}", None, None, 0, None, None, None
    )
    named = chance.some_of((("c", 1), ("c", 2), ("a", 1)), 2) or [("d", 1)]
    waits = (Wait("remote", *each, None, Asks("bank", "charge", "{}", "{}", "r1")) for each in named)
    return AskRemotes(_fence(chance), Chain(JOB_ID), chance.below(2), tuple(waits))


def _take(chance: Chance, picture: Picture) -> TakeAnswer:
    wait, guid = chance.one_of(WAITS), chance.one_of(("gone", *picture.messages))
    for message in picture.messages.values():
        waits = [
            each for each in WAITS if each.name == message.name and place_of(0, each) in picture.activities
        ]
        if waits and not chance.rarely():
            wait, guid = chance.one_of(waits), message.guid
    wake = Wake(guid, "signal", 0, "a", 1, None, taken=False)
    return TakeAnswer(_fence(chance), Chain(JOB_ID), 0, wait, wake, 990)


def _deliver(chance: Chance, picture: Picture) -> Deliver:
    guid = chance.one_of(("new", "new", *picture.messages))
    kind = chance.one_of(("signal", "timer", "child", "result", "resume"))
    return Deliver(guid, JOB_ID, kind, chance.one_of(("a", "b", "gather", AGAIN)), None)


def _spawn(chance: Chance, _picture: Picture) -> Spawn:
    start = chance.below(TOTAL)
    some = tuple(_child(n) for n in range(start, TOTAL if chance.often() else start + chance.below(2)))
    about = (TOTAL, chance.below(2), chance.often())
    return Spawn(_fence(chance), Chain(JOB_ID), GROUP, *about, some, 990)


def _end(chance: Chance, picture: Picture) -> EndJob:
    state = chance.one_of((JobState.SUCCEEDED, JobState.FAILED_FINAL, JobState.CANCELLED))
    reason = None if state is JobState.SUCCEEDED else "FATAL"
    return EndJob.of(_fence(chance), state, _fact(), driver=_driver(chance, picture), reason=reason)


def _release(chance: Chance, _picture: Picture) -> EndAttempt:
    hold = Hold.MISMATCH.value if chance.rarely() else None
    return EndAttempt(_fence(chance), "RELEASED", False, chance.instant(), hold, hold, _fact())


def _reclaim(chance: Chance, picture: Picture) -> ReclaimAttempt:
    options = chance.one_of(("{}", '{"attempts_max":1}', "broken"))
    picture.past = None if chance.rarely() else LostAttempts(900, options, chance.below(4))
    unit = "0/pay#1" if chance.rarely() else ""
    if unit:
        put_effect(chance, picture, held=False)
    refused = "the database said no" if chance.rarely() else None
    fence = Fence(JOB_ID, 1, "call-1") if unit else _fence(chance)
    return ReclaimAttempt(fence, unit, chance.often(), refused)


KINDS: tuple[Callable[[Chance, Picture], Planned], ...] = (
    _await,
    _ask,
    _take,
    _deliver,
    _spawn,
    _end,
    _release,
    _reclaim,
    lambda chance, picture: Cycle(_fence(chance), _driver(chance, picture), 0, "{}", _fact()),
    lambda chance, _picture: RecordEvent(_fence(chance), _fact()),
    lambda chance, _picture: SetValue(_fence(chance), "progress", "1"),
    lambda chance, _picture: RecordStep(
        _fence(chance),
        Chain(JOB_ID),
        0,
        "work",
        1,
        "step",
        "SUCCEEDED",
        1_111_000_000_001,
        None,
        None,
        None,
        990,
        980,
    ),
    lambda chance, _picture: CancelJob(
        "nobody" if chance.rarely() else JOB_ID, 10, force=chance.often(), late=chance.rarely()
    ),
    lambda chance, _picture: HoldJob(JOB_ID, Hold.PAUSED, "a pause", chance.one_of((None, None, 1))),
    lambda _chance, _picture: ResumeJob(JOB_ID),
    *(2 * (lambda chance, picture: chance.one_of(legal_effects.KINDS)(chance, picture),)),
)


def drawn_request(chance: Chance, picture: Picture) -> Planned:
    """Draw a request of any kind about a job."""
    return chance.one_of(KINDS)(chance, picture)
