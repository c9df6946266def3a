"""What goes in and out of the HTTP API besides commands and callbacks, as types; OpenAPI is made of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from tallystick.core.lifecycles import JobState
from tallystick.core.limits import DIRECTIVES_MAX, KEY_CHARS_MAX, PAGE_ROWS_MAX, REPORTS_MAX, TAGS_MAX
from tallystick.core.remote.wire import Directive, Name

WAIT_SECONDS_MAX: Final = 60
PAGE_ROWS_USUAL: Final = 100

Key: TypeAlias = Annotated[str, msgspec.Meta(pattern=rf"^[!-~]{{1,{KEY_CHARS_MAX}}}$")]
Cursor: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_CHARS_MAX)]
Place: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=4 * KEY_CHARS_MAX)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=PAGE_ROWS_MAX)]
Stands: TypeAlias = Literal["CALLING", "RESTING", "IN_DOUBT", "HAPPENED", "REFUSED", "NOT_DONE"]
Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
Duration: TypeAlias = str | Annotated[float, msgspec.Meta(ge=0)]


class _Form(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a request says: a member that is not known here is refused, because it was meant."""


class Told(msgspec.Struct, frozen=True, rename={"job_id": "jobId", "step_id": "stepId"}):
    """What an answer says."""


class JobForm(_Form, frozen=True):
    """A workflow by name, with its arguments: an object holds them by name, a list by place."""

    workflow: str
    arguments: dict[str, object] | list[object] = {}
    version: str | None = None
    idempotency_key: Key | None = None
    # Without a key the same content is the same job; false makes a new job of every request.
    idempotent: bool = True
    queue: Name | None = None
    priority: Annotated[int, msgspec.Meta(ge=0, le=9)] | None = None
    delay: Duration | None = None
    deadline: Duration | None = None
    tags: Annotated[list[Key], msgspec.Meta(max_length=TAGS_MAX)] = []
    # Whose job it is: a key for all tenants must say it, any other means its own.
    tenant: Name | None = None


class Cancelling(_Form, frozen=True):
    """How a job is to end: its grace, or by force, which is for admins."""

    grace: Duration | None = None
    force: bool = False


class Pausing(_Form, frozen=True):
    """Why a job is held."""

    why: str | None = None


class ForkForm(_Form, frozen=True):
    """Where a new job begins that keeps what this one recorded before."""

    at: str
    version: str | None = None
    id: Key | None = None


class Signal(_Form, frozen=True):
    """A signal; one with an id that is sent again is the same."""

    value: object = None
    id: Key | None = None


class Bulk(_Form, frozen=True):
    """One word to all jobs of a tenant that match; `count` only counts those that it would reach."""

    verb: Literal["cancel", "pause", "resume", "retry"]
    state: list[JobState] = []
    workflow: str | None = None
    queue: Name | None = None
    tag: str | None = None
    key: str | None = None
    parent: str | None = None
    held: bool = False
    # A part of the message of the error.
    error: str | None = None
    # When they were submitted: from `since` on, and before `until`.
    since: Instant | None = None
    until: Instant | None = None
    tenant: Name | None = None
    # All jobs of the tenant, where no filter says which.
    everything: bool = False
    count: bool = False


class ResolveForm(_Form, frozen=True):
    """What came of an effect: it happened and returned `value`, it did not happen, or it is called again."""

    says: Literal["happened", "did_not_happen", "retry"]
    value: object = None
    # As `charge#2`, where a job has several in doubt.
    effect: str = ""


class QueueLimits(_Form, frozen=True):
    """Limits of a queue to set; null is no limit, and what is not named stays as it is."""

    concurrency: int | msgspec.UnsetType | None = msgspec.UNSET
    per_key: int | msgspec.UnsetType | None = msgspec.UNSET
    worker_concurrency: int | msgspec.UnsetType | None = msgspec.UNSET
    rate: str | msgspec.UnsetType | None = msgspec.UNSET
    key_rate: str | msgspec.UnsetType | None = msgspec.UNSET
    burst: int | msgspec.UnsetType = msgspec.UNSET
    order: Literal["priority", "fifo"] | msgspec.UnsetType = msgspec.UNSET
    hold_slots: bool | msgspec.UnsetType = msgspec.UNSET


class Backfilling(_Form, frozen=True):
    """A time whose ticks become jobs, those at `until` not."""

    since: Instant
    until: Instant


class Nothing(_Form, frozen=True):
    """No member is known here."""


class JobsQuery(_Form, frozen=True):
    """Which jobs: those of the key's tenant, newest first; `after` is the last one of the page before."""

    state: list[JobState] = []
    workflow: str | None = None
    tag: str | None = None
    after: Cursor | None = None
    limit: Limit = PAGE_ROWS_USUAL
    tenant: Name | None = None


class EffectsQuery(_Form, frozen=True):
    """Which effects; a page looks at 10,000 at most, so it may have fewer than `limit` and `after`."""

    show: Literal["open", "ended"] = "open"
    effect: str | None = None
    key: str | None = None
    job: str | None = None
    # Where it stands: its phase while it is open, then what came of it.
    stands: Stands | None = None
    after: Place | None = None
    limit: Limit = PAGE_ROWS_USUAL
    tenant: Name | None = None


class StepsQuery(_Form, frozen=True):
    """Which steps of a job; `after` is the last one of the page before."""

    after: Cursor | None = None
    limit: Limit = PAGE_ROWS_USUAL


class HistoryQuery(_Form, frozen=True):
    """Which facts of a job; `after` is the number of the last one of the page before."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    limit: Limit = PAGE_ROWS_USUAL


class DirectivesQuery(_Form, frozen=True):
    """A question for work: `wait` is for how many seconds, if there is none, and `max` how many to give."""

    worker: Name
    service: list[Name] = []
    wait: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0
    max: Annotated[int, msgspec.Meta(ge=1, le=DIRECTIVES_MAX)] = 1
    # Whether it is given again what it has not acknowledged; a worker that has all answers needs no copies.
    again: bool = True


class Reported(_Form, frozen=True):
    """One of many reports: of which kind, with the token of its directive, and what a callback would say."""

    kind: Literal["ack", "heartbeat", "result"]
    token: str
    report: dict[str, object]


class ReportsForm(_Form, frozen=True):
    """Reports of one remote worker, on one directive or on many."""

    reports: Annotated[list[Reported], msgspec.Meta(max_length=REPORTS_MAX)] = []


class Submitted(Told, frozen=True):
    """The job of a submission, and whether this request made it."""

    job_id: str
    created: bool


class Sent(Told, frozen=True):
    """What became of a signal."""

    job_id: str
    delivered: str


class WhyShown(Told, frozen=True):
    """Why a job stands where it stands."""

    job_id: str
    state: JobState
    why: str


class Reached(Told, frozen=True):
    """How many jobs a word has reached, or would reach; and for how many that match it was refused."""

    reached: int
    passed_by: int = 0


class QueueShown(Told, frozen=True):
    """A queue that has limits: those that count now, who paused it, and how many of its jobs run."""

    name: str
    limits: dict[str, object]
    declared: bool
    paused_by: str | None
    paused_at: str | None
    running: int


class QueuesPage(Told, frozen=True):
    """All queues that have limits."""

    queues: list[QueueShown]


class ScheduleShown(Told, frozen=True):
    """A schedule: when it ticks, next and last, and who paused it or what holds it."""

    id: str
    workflow: str
    when: str
    declared: bool
    paused_by: str | None
    hold_reason: str | None
    next_at: str | None
    last_at: str | None
    last_job: str | None
    tenant: str


class SchedulesPage(Told, frozen=True):
    """All schedules."""

    schedules: list[ScheduleShown]


class Backfilled(Told, frozen=True):
    """The job of each tick, and whether this request made it."""

    jobs: list[Submitted]


class DirectivesGiven(Told, frozen=True):
    """Directives for this worker; none if nothing came in time.

    `more` is there if all of them were given before and there may be others: ask again for those too.
    """

    directives: list[Directive]
    more: bool = False


class HeardShown(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a callback: whether to go on, for how long, and the token for what follows."""

    status: str
    cancelling: bool
    # How long the lease still lasts; a span, because clocks differ.
    lease_ms: int | None = None
    token: str | None = None


class ReportHeard(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one of many reports: `status` is that of a callback; `code` and `detail` of errors."""

    status: int
    heard: str | None = None
    cancelling: bool | None = None
    lease_ms: int | None = None
    token: str | None = None
    code: str | None = None
    detail: str | None = None


class ReportsHeard(Told, frozen=True):
    """The answers to many reports, in their order; each is good by itself."""

    answers: list[ReportHeard]


class HealthShown(Told, frozen=True):
    """That the process answers."""

    status: str


class Problem(msgspec.Struct, frozen=True):
    """Problem details (RFC 9457); `code` never changes its meaning."""

    type: str
    title: str
    status: int
    code: str
    detail: str | msgspec.UnsetType = msgspec.UNSET
