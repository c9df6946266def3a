"""What primitives are made of and what comes back: plain values, the same for every store."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.queues.admitting import TakenSlot


class Fence(NamedTuple):
    """The right of one live attempt to write for its job."""

    job_id: str
    attempt: int
    lease_id: str


class Fact(NamedTuple):
    """Something that becomes true; it takes its place in the chain when it is written."""

    chain: Chain
    type: str
    at: int
    attempt: int
    payload: str


class TurnEnd(NamedTuple):
    """The fact that ended a turn: which turn, its place and hash, and the attempt that wrote it."""

    dimension: int
    n: int
    event_hash: bytes
    attempt: int


class StoredEvent(NamedTuple):
    """A fact in its place, linked to the one before it."""

    job_id: str
    n: int
    type: str
    at: int
    attempt: int
    payload: str
    prev_hash: bytes
    event_hash: bytes


class Reservation(NamedTuple):
    """A claim on (tenant, scope, value): the first that is written makes the job."""

    tenant_id: str
    scope: Literal["key", "content"]
    value: str
    content_hash: str
    canon_version: int


class NewLease(NamedTuple):
    """The lease that a claim writes."""

    lease_id: str
    owner: str
    lease_ms: int


class NewJob(NamedTuple):
    """The columns of a job that its submission decides."""

    job_id: str
    payload: str
    ready_at: int
    deadline_at: int | None
    created_at: int
    # What jobs that are submitted together share begins here.
    tenant_id: str
    kind: str
    handler: str
    version: str
    queue: str
    priority: int
    options: str
    request_type: str | None = None
    input_ref: str | None = None
    output_ref: str | None = None
    schema_version: str | None = None
    idempotency_key: str | None = None
    idempotency_hash: str | None = None
    canon_version: int | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    tags: str | None = None
    # The job that started it. A detached job is not counted, cancelled or given a deadline by its parent.
    parent_job_id: str | None = None
    detached: int = 0
    # The hooks that its program declares.
    hooks: str | None = None
    # Jobs of a queue with one key share limits.
    limit_key: str | None = None


class Asks(NamedTuple):
    """What a remote step asks of its service: the directive is made of this when the step is opened."""

    service: str
    step_type: str
    payload: str
    # The rules of the step, as its row keeps them.
    options: str
    lease_id: str


class Wait(NamedTuple):
    """An activity that a message answers: a signal of its name, its timer at `due_at`, what came of it."""

    kind: Literal["wait", "sleep", "group", "remote", "effect"]
    name: str
    occurrence: int
    due_at: int | None
    # Of a remote step alone.
    asks: Asks | None = None


class Group(NamedTuple):
    """Where a group of children stands in its parent: one activity, however many children."""

    dimension: int
    name: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.dimension}:{self.name}#{self.occurrence}"

    @classmethod
    def parse(cls, text: str) -> Group:
        """Read what `str` has written.

        >>> Group.parse(str(Group(0, "gather", 2)))
        Group(dimension=0, name='gather', occurrence=2)
        """
        dimension, _, rest = text.partition(":")
        name, _, occurrence = rest.rpartition("#")
        return cls(int(dimension), name, int(occurrence))

    def child_id(self, parent: str, index: int) -> str:
        """Return the identifier of a child, which follows from its place."""
        return f"{parent}.{self.dimension}.{self.occurrence}.{index:08d}"

    @staticmethod
    def root_of(job_id: str) -> str:
        """Return the job at the top of a tree of children: each has its parent's identifier in front.

        >>> Group.root_of(Group(0, "gather", 2).child_id(Group(0, "gather", 1).child_id("id-1", 4), 7))
        'id-1'
        """
        return job_id.partition(".")[0]


class StoredError(NamedTuple):
    """An error as the columns of a job keep it: all of it as text, its stable code, and its message."""

    text: str
    code: str
    message: str


class Existing(NamedTuple):
    """The submission met an earlier one under the same reservation."""

    job_id: str
    content_hash: str
    created_at: int


class Answer(NamedTuple):
    """What answered a wait, and which of those that were asked for; `payload` is None for a timer.

    `ahead` are the signals that the next waits of that name will take, in their order.
    """

    guid: str
    payload: str | None
    timed_out: bool
    place: int = 0
    ahead: tuple[Wake, ...] = ()


class Delivered(StrEnum):
    """What became of a message."""

    WOKE = "stored; the job is due now"
    KEPT = "stored; a live attempt or a later wait takes it"
    KNOWN = "it was delivered before"
    DROPPED = "the job has ended, or what it names was answered"
    REFUSED = "not stored; what it names has not begun, deliver it again later"
    ABSENT = "there is no such job"


class Pruned(NamedTuple):
    """How many jobs are gone, and behind which one to go on; None when there is nothing old behind it."""

    jobs: int
    after: str | None


class Record(NamedTuple):
    """One recorded step, as replay needs it."""

    name: str
    occurrence: int
    kind: str
    state: str
    n: int
    result: str | None
    error: str | None
    notes: str | None
    attempt: int | None


class Opened(NamedTuple):
    """A call that is open: nothing has answered it yet."""

    name: str
    occurrence: int
    kind: str
    # Which attempt has opened it.
    attempt: int | None


class OpenWait(NamedTuple):
    """Something that a job waits for: where it stands, since when, until when, and what a group counts."""

    dimension: int
    name: str
    occurrence: int
    kind: str
    since: int
    until: int | None
    semaphore: int | None
    threshold: int | None


# Which kinds of waits messages answer that have entered one, or name it.
_TAKERS: Final = {
    "signal": ("wait",),
    "timer": ("wait", "sleep"),
    "resume": ("group",),
    "result": ("remote", "effect"),
}


class Wake(NamedTuple):
    """The message that drives a segment; `taken` says that an earlier segment has given it to its wait."""

    guid: str
    kind: str
    dimension: int
    name: str
    occurrence: int | None
    payload: str | None
    taken: bool

    def answers(self, wait: Wait, dimension: int) -> bool:
        """Tell whether such a wait takes this: a signal of its name, its timer, RESULT or closed group."""
        if self.taken or self.name != wait.name:
            return False
        if self.kind == "signal" and self.occurrence is None:
            return wait.kind == "wait"
        mine = (self.dimension, self.occurrence) == (dimension, wait.occurrence)
        return mine and wait.kind in _TAKERS.get(self.kind, ())


class ClaimedJob(NamedTuple):
    """Everything a worker needs to run a segment; nothing else is read while it runs."""

    fence: Fence
    handler: str
    version: str
    payload: str
    options: str
    dimension: int
    # How long its deadline was away when it was claimed; instants on the store's clock mean nothing here.
    time_left_ms: int | None
    created_at: int
    chain: Chain
    records: tuple[Record, ...]
    tries: tuple[StoredEvent, ...]
    charged: int
    suspect: bool = False
    driver: str = "start"
    parent: tuple[str, str] | None = None
    cancelling: bool = False
    semaphore: int = 1
    wake: Wake | None = None
    # The job that started it, also if it is detached; `parent` is the job that hears of its end.
    parent_job_id: str | None = None
    idempotency_key: str | None = None
    tags: str | None = None
    opened: tuple[Opened, ...] = ()
    # The slot that it has taken in a queue with limits.
    slot: TakenSlot | None = None


class ExpiredAttempt(NamedTuple):
    """An attempt whose lease has run out; `unit` names an effect, and is empty for the job's own."""

    fence: Fence
    unit: str = ""


class Interrupted(NamedTuple):
    """A job that was asked to end, is held, or has been ended, perhaps without its worker."""

    job_id: str
    asked: bool
    hold: str | None
    ended: bool


class Overdue(NamedTuple):
    """A job whose grace is over; `late`: one that was not asked to end, and whose deadline has passed."""

    job_id: str
    late: bool


class OwedHook(NamedTuple):
    """A job to which a hook is owed, since or not before `hook_due`, and what the last call raised."""

    job_id: str
    handler: str
    state: str
    hold: str | None
    hook_told: str | None
    hook_due: int
    hook_tries: int
    hook_error: str | None


class JobRow(NamedTuple):
    """A job as people and programs look at it."""

    job_id: str
    state: str
    handler: str
    version: str
    queue: str
    priority: int
    tenant_id: str
    attempt: int
    ready_at: int | None
    hold: str | None
    hold_reason: str | None
    semaphore: int
    start_ledger: int
    created_at: int
    updated_at: int
    completed_at: int | None
    deadline_at: int | None
    payload: str
    options: str
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None
    idempotency_key: str | None
    idempotency_hash: str | None
    tags: str | None
    retry_of: str | None = None
    retried_as: str | None = None
    limit_key: str | None = None


class ShownValue(NamedTuple):
    """A value that a job shows; `rev` grows whenever it is set."""

    job_id: str
    name: str
    value: str
    rev: int
    attempt: int
    changed_at: int


class ChildRow(NamedTuple):
    """How a child stands."""

    job_id: str
    state: str
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None
    handler: str
