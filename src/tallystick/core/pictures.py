"""Pictures: what a decision may look at, read under the lock of its job. Plain values: no store, no clock.

A store reads what a request wants to see, a verb decides from it, and what the verb plans is put into the
picture again, so that the next request of the same flush sees what the one before it has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tallystick.core.chain import Chain
from tallystick.core.ledger.marks import is_taken
from tallystick.core.lifecycles import STEP, AttemptState
from tallystick.core.tuples import tuned
from tallystick.core.values import Fence, Group, Wait, Wake

if TYPE_CHECKING:
    from tallystick.core.effects.rows import EffectKey, EffectRow, OpenEffect, Waiter
    from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep

Place: TypeAlias = tuple[int, str, int]
"""Where an activity stands in its job: dimension, name, occurrence."""

_PLACES_KEPT: Final = 1_024
_RUNNING: Final = AttemptState.IN_PROGRESS

START: Final = "start"
"""What an attempt calls the message that began its job; its ledger is a column of the job."""


class Now(NamedTuple):
    """The time by the clock of the store, read after the locks."""

    wall: int

    def moment(self, at: int, told_at: int) -> int:
        """Return an instant on the store's clock that a worker named at `told_at` by its own clock."""
        return at + self.wall - told_at


@tuned
class JobFacts(NamedTuple):
    """The columns of a job that decisions read or change."""

    job_id: str
    state: str
    attempt: int
    dimension: int
    ready_at: int | None
    hold: str | None
    semaphore: int
    root_ledger: int
    start_ledger: int
    start_acked_at: int | None
    cancel_at: int | None
    completed_at: int | None
    rev: int
    ledger_form: int
    parent_job_id: str | None
    parent_step: str | None
    # The newest place of its inbox, and when what stands there was written.
    inbox_end: int
    inbox_at: int
    deadline_at: int | None = None
    # Why it was asked to end, if not because a person wanted it: `DEADLINE`.
    code: str | None = None

    @property
    def is_protocol(self) -> bool:
        """Tell whether it is a protocol job that goes on: its start is over, and no attempt ran it."""
        return self.attempt == 0 and self.start_acked_at is not None and self.completed_at is None

    @property
    def parent(self) -> tuple[str, str] | None:
        """Return the job and the group that counts this job; one that was submitted detached has none."""
        if self.parent_job_id is None or self.parent_step is None:
            return None
        return self.parent_job_id, self.parent_step

    def is_late(self, now: Now) -> bool:
        """Tell whether its deadline has passed."""
        return self.deadline_at is not None and self.deadline_at <= now.wall

    def is_ending(self, now: Now) -> bool:
        """Tell whether it was asked to end and has no time left for that: nothing wakes it any more."""
        return self.cancel_at is not None and self.cancel_at <= now.wall


class Lease(NamedTuple):
    """The attempt that holds a job or is committed; `live` is judged by the store's clock, after the lock."""

    attempt: int
    lease_id: str
    status: str
    live: bool
    guid: str


class LostAttempts(NamedTuple):
    """What a lost attempt is judged by."""

    created_at: int
    options: str
    # How many attempts were charged to the job since it last made progress.
    charged: int


@tuned
class Activity(NamedTuple):
    """A wait, a sleep, a remote step, an effect or a group of children, with what a group counts."""

    job_id: str
    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    ledger: int
    rev: int
    attempt: int
    semaphore: int | None = None
    threshold: int | None = None
    failed: int | None = None
    mode: str | None = None

    @property
    def place(self) -> Place:
        """Return where it stands in its job."""
        return (self.dimension, self.name, self.occurrence)

    @property
    def is_open(self) -> bool:
        """Tell whether it has not ended; only a remote step is in other states before that."""
        return self.state == OPEN or (self.kind == "remote" and self.state not in ENDED)

    @property
    def is_closed(self) -> bool:
        """Tell whether a group has what its parent waits for: enough ends, or a failure that is enough."""
        if self.semaphore is None or self.threshold is None:
            return False
        return self.semaphore <= self.threshold or (self.mode == FAIL_FAST and bool(self.failed))


FAIL_FAST: Final = "fail_fast"


@tuned
class Message(NamedTuple):
    """A message in the inbox of a job; a signal learns the place of its wait when it enters it."""

    guid: str
    job_id: str
    dimension: int
    name: str
    occurrence: int | None
    kind: str
    payload: str | None
    due_at: int | None
    ledger: int
    redeliveries: int
    created_at: int
    arrived: int
    acked_at: int | None

    @property
    def place(self) -> Place | None:
        """Return the activity that it names or has entered; None for a signal that was not taken."""
        return None if self.occurrence is None else (self.dimension, self.name, self.occurrence)

    @property
    def is_taken(self) -> bool:
        """Tell whether its work is durable."""
        return is_taken(self.ledger)

    @property
    def is_of_root(self) -> bool:
        """Tell whether it enters the job itself: the word to turn, and the one that cancels it."""
        return self.kind == "resume" and self.name in _OF_ROOT

    def as_wake(self) -> Wake:
        """Return it as the segment sees it that is to take it."""
        about = (self.dimension, self.name, self.occurrence, self.payload, self.is_taken)
        return Wake(self.guid, self.kind, *about)

    @property
    def is_owed(self) -> bool:
        """Tell whether it counts in the semaphore: of the root, or taken by a wait, with step 2 to do."""
        return self.acked_at is None and self.kind != "child" and (self.is_taken or self.is_of_root)

    @property
    def since(self) -> int:
        """Return since when it could be taken."""
        return self.created_at if self.due_at is None else self.due_at


AGAIN: Final = "again"
CANCEL: Final = "cancel"
_OF_ROOT: Final = (AGAIN, CANCEL)


class Picture:
    """One job as a decision sees it."""

    __slots__ = (
        "_chain",
        "activities",
        "asked",
        "children",
        "directives",
        "effects",
        "end",
        "has_open_children",
        "home",
        "job",
        "lease",
        "messages",
        "past",
        "remotes",
        "whole",
    )

    def __init__(self, job: JobFacts, lease: Lease | None = None) -> None:
        """Begin with the row of the job and the attempt that holds it."""
        self.job = job
        self.lease = lease
        # Those that are open, and those that messages in the picture name.
        self.activities: dict[Place, Activity] = {}
        self.messages: dict[str, Message] = {}
        # Whether all signals that were asked for are here; if not, a verb may want another look.
        self.whole = True
        # The end of its chain, for requests that write facts without holding the job.
        self.end: tuple[int, bytes] = (0, b"")
        self._chain: Chain | None = None
        # Children that were asked for, and those of them that exist.
        self.asked: frozenset[str] = frozenset()
        self.children: frozenset[str] = frozenset()
        # Whether children go on that are not detached; looked at for a job that may end.
        self.has_open_children = False
        # For a sweep: what to judge by.
        self.past: LostAttempts | None = None
        # Its effects that are open; None if they were not asked for.
        self.effects: dict[Place, OpenEffect] | None = None
        # Its remote steps that are open or asked for, and what of theirs is not out yet, by step; what their
        # directives say of the job.
        self.remotes: dict[Place, ProtocolStep] = {}
        self.directives: dict[str, OutboxRow] = {}
        self.home: ProtocolJob | None = None

    def copy(self) -> Picture:
        """Return a picture that can be changed without this one."""
        other = Picture(self.job, self.lease)
        other.activities = dict(self.activities)
        other.messages = dict(self.messages)
        other.whole, other.end, other._chain = self.whole, self.end, self._chain
        other.asked, other.children = self.asked, self.children
        other.has_open_children = self.has_open_children
        other.past = self.past
        other.effects = None if self.effects is None else dict(self.effects)
        other.remotes, other.directives, other.home = dict(self.remotes), dict(self.directives), self.home
        return other

    def holds(self, fence: Fence) -> bool:
        """Tell whether a report under this fence is accepted: its job is open, its attempt runs and lives."""
        lease = self.lease
        return (
            lease is not None
            and lease.live
            and lease.status == RUNNING
            and (lease.attempt, lease.lease_id) == fence[1:]
            and self.job.completed_at is None
        )

    def chain(self) -> Chain:
        """Return the chain of a job that no worker holds; the next author goes on from there."""
        if self._chain is None:
            self._chain = Chain(self.job.job_id, *self.end)
        return self._chain

    def named_by(self, message: Message) -> Activity | None:
        """Return the activity that a message names or has entered."""
        return self.activities.get(message.place)  # type: ignore[arg-type]  # nothing stands at no place

    def open_activities(self) -> list[Activity]:
        """Return what has not ended, in the order in which it was read."""
        return [each for each in self.activities.values() if each.is_open]

    @property
    def open_effects(self) -> dict[Place, OpenEffect]:
        """Return its effects that are open, as far as they were asked for."""
        return self.effects or {}

    @property
    def has_unseen_remotes(self) -> bool:
        """Tell whether remote steps are open of which only the activity was looked at."""
        return any(
            each.kind == "remote" and each.is_open and place not in self.remotes
            for place, each in self.activities.items()
        )


ENDED: Final = frozenset(map(str, STEP.final))
"""The states of an activity that has ended."""

OPEN: Final = "IN_PROGRESS"
RUNNING: Final = "IN_PROGRESS"


class Pictures(dict[str, Picture]):
    """The jobs of a flush; keys of effects that are asked for and taken, and the jobs that wait for one."""

    def __init__(self, *given: object) -> None:
        """Begin with these jobs and no keys."""
        super().__init__(*given)
        self.occupied: dict[EffectKey, EffectRow] = {}
        # By what their lost attempts name: those that wait for effects of these jobs, and those of these jobs
        # that wait.
        self.waiters: dict[str, set[Waiter]] = {}

    def held(self, fence: Fence) -> Picture | None:
        """Return the picture of the job that this fence holds; None for a stale one."""
        picture = self.get(fence.job_id)
        return picture if picture is not None and picture.holds(fence) else None

    def overlay(self, jobs: Iterable[str]) -> Pictures:
        """Return pictures of these jobs and of their parents alone, which can be changed and given up.

        A bundle of several requests is whole or nothing.
        """
        over = Pictures()
        over.occupied = dict(self.occupied)
        over.waiters = {guid: set(waiters) for guid, waiters in self.waiters.items()}
        waiting = {waiter.job_id for waiters in self.waiters.values() for waiter in waiters}
        for job_id in {*jobs, *waiting}:
            picture = self.get(job_id)
            if picture is not None:
                over[job_id] = picture.copy()
                home = picture.job.parent_job_id
                if home is not None and home in self:
                    over[home] = self[home].copy()
        return over


def timer_of(job_id: str, place: Place) -> str:
    """Return the identifier of the timer of a wait."""
    dimension, name, occurrence = place
    return f"{job_id}:{dimension}:{name}#{occurrence}:timer"


def join_of(job_id: str, group: str) -> str:
    """Return the identifier of the word that a group is closed."""
    return f"join:{job_id}:{group}"


def child_of(child_id: str) -> str:
    """Return the identifier of the word that a child has ended."""
    return f"child:{child_id}"


def turn_of(job_id: str, dimension: int) -> str:
    """Return the identifier of the word to turn to this dimension."""
    return f"{AGAIN}:{job_id}:{dimension}"


def signal_of(job_id: str, sender_id: str) -> str:
    """Return the identifier of a signal that its sender may send again: it is known by the sender's id."""
    return f"{job_id}:{sender_id}"


def is_of_sender(guid: str, job_id: str) -> bool:
    """Tell whether the sender of a signal has given it an id."""
    return guid.startswith(signal_of(job_id, ""))


def cancel_of(job_id: str) -> str:
    """Return the identifier of the message by which a cancellation ends a job."""
    return f"{CANCEL}:{job_id}"


def place_of(dimension: int, wait: Wait) -> Place:
    """Return where a wait of a segment in this dimension stands."""
    return (dimension, wait.name, wait.occurrence)


@lru_cache(_PLACES_KEPT)
def group_place(step: str) -> Place:
    """Return where the group stands that children name as their parent's step; all of them name one."""
    dimension, name, occurrence = Group.parse(step)
    return (dimension, name, occurrence)
