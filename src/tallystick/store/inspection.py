"""What a store shows to people: its jobs, its health, and the books of its jobs in pages.

Nothing here is on the way of a job. Every read is bounded, so a check of a million jobs takes as little
memory as one of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from tallystick.core.audit.book import ActivityRow, AttemptRow, Book, Kept, StepRest, WholeJob
from tallystick.core.audit.removals import ChainEnd, LogEnd, PrunedRow
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Message, Place
from tallystick.core.remote.rows import OutboxLag, OutboxRow, ProtocolJob, ProtocolPicture, ProtocolStep
from tallystick.core.values import JobRow, OpenWait, OwedHook, StoredEvent
from tallystick.core.watching.acts import ActRow
from tallystick.core.watching.rows import DEPTH_MAX, Backlog, EndedCount, RunningJob, WorkerRow
from tallystick.errors import BadInput
from tallystick.store.open_effects import OpenEffectReads

T = TypeVar("T")


class Health(NamedTuple):
    """How the store is: facts by name, what is wrong, and what is worth knowing, in sentences."""

    facts: dict[str, object]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class StaleReports(NamedTuple):
    """How many reports came too late since the beginning, and when the last one did."""

    total: int
    last_at: int | None


class Reserved(NamedTuple):
    """A reservation, and what the job that it names is known by; None: there is no such job."""

    kept: Kept
    tenant_id: str | None
    key: str | None
    hash: str | None


class KeptKey(NamedTuple):
    """The key of an effect, and whether the job and the attempt are there that it names."""

    exec_id: str
    job_id: str
    unit: str
    has_job: bool
    has_attempt: bool


class WorkerLeases(NamedTuple):
    """The live attempts of one worker: how many of its leases hold, and how many ran out.

    `overdue_ms` says for how long the oldest has, None if that was before this machine was started; `job_id`
    is one of those whose lease ran out.
    """

    owner: str
    held: int
    lost: int
    overdue_ms: int | None
    job_id: str | None


class JobHead(NamedTuple):
    """The end of the chain of a job as its row has it, when the job was made and when it has ended."""

    head: ChainEnd
    created_at: int
    completed_at: int | None


class Inspection(OpenEffectReads, Protocol):
    """The reads of a check."""

    def at_once(self, ask: Callable[[Inspection], T]) -> T:
        """Let a function read several things of one instant; it is short, and may be called again.

        All that the store keeps for that instant stays until the function returns.
        """
        ...

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        ...

    def health(self, jobs_max: int | None = None) -> Health:
        """Examine the store itself; where that is a look at jobs, at so many of them."""
        ...

    def book(self, job_id: str) -> Book | None:
        """Return the book of one job."""
        ...

    def books(self, *, after: str | None, limit: int) -> list[Book]:
        """Return a page of books, newest job first; `after` is the last job_id of the page before."""
        ...

    def facts(self, job_id: str, *, after: int, limit: int) -> list[StoredEvent]:
        """Return the facts of a job that follow number `after`, in order, inline steps included."""
        ...

    def began(self, job_id: str, *, after: int, limit: int) -> dict[int, int]:
        """Return when steps and waits of a job began that follow place `after`, by their places."""
        ...

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """Return the attempts at a job itself, oldest first."""
        ...

    def all_attempts(self, job_id: str) -> dict[str, list[AttemptRow]]:
        """Return the attempts at a job and at its effects, by their units, each oldest first."""
        ...

    def keys_of(self, job_id: str) -> list[EffectRow]:
        """Return the keys of the effects of a job."""
        ...

    def kept_keys(self, *, after: str, limit: int) -> list[KeptKey]:
        """Return a page of keys of effects behind one, and whether job and attempt of each are there."""
        ...

    def activities(self, job_id: str, *, after: Place, limit: int) -> list[ActivityRow]:
        """Return the waits, sleeps and groups of a job that stand behind a place, in order."""
        ...

    def messages(self, job_id: str, *, after: str, limit: int) -> list[Message]:
        """Return the messages of a job behind a guid, in order, each with what it says."""
        ...

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a protocol job with its steps and the directive that is not out; None for another job."""
        ...

    def open_children(self, job_id: str) -> dict[str, int]:
        """Return how many children of each group of a job have not ended."""
        ...

    def whole(self, job_id: str) -> WholeJob | None:
        """Return what was submitted and all else that the row of a job says."""
        ...

    def step_rests(self, job_id: str, *, after: Place, limit: int) -> list[StepRest]:
        """Return the steps of a job behind a place, in order, with what their facts do not tell."""
        ...

    def message(self, guid: str) -> Message | None:
        """Return one message, with what it says."""
        ...

    def directives(self, job_id: str) -> list[tuple[OutboxRow, int]]:
        """Return the directives of a job, and when each was last written."""
        ...

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        ...

    def waiting_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives that are not out; None for all tenants, for all services."""
        ...

    def dead_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives that could not be published; none of those that were withdrawn."""
        ...

    def outbox_lag(self, tenant_id: str | None) -> list[OutboxLag]:
        """Return how late the outbox is, for each service and way in which its directives travel."""
        ...

    def count_directives(self, job_id: str) -> int:
        """Return how many directives a job has made."""
        ...

    def home(self, job_id: str) -> ProtocolJob | None:
        """Return what directives say of a job."""
        ...

    def open_remotes(self, job_id: str) -> list[ProtocolStep]:
        """Return the remote steps of a workflow that are open."""
        ...

    def remote_steps(self, job_id: str, *, after: Place, limit: int) -> list[ProtocolStep]:
        """Return the remote steps of a workflow behind a place, in order; no copies from another job."""
        ...

    def kept(self, tenant_id: str, scope: str, value: str) -> Kept | None:
        """Return a reservation."""
        ...

    def reserved(self, *, after: tuple[str, str, str], limit: int) -> list[Reserved]:
        """Return a page of reservations behind one, with what the job of each is known by."""
        ...

    def tags(self, *, after: tuple[str, str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return a page of tags behind one, each with its job and all tags that the row of that job has."""
        ...

    def has_tags(self, job_id: str, tags: Sequence[str]) -> set[str]:
        """Return those of these tags by which a job can be found."""
        ...

    def strays(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Return the next identifiers that rows have for their job, and whether there is such a job."""
        ...

    def removals(self, *, after: int, limit: int) -> list[PrunedRow]:
        """Return a page of the log of removals, in its order."""
        ...

    def removals_of(self, job_id: str) -> list[PrunedRow]:
        """Return what the log of removals says of a job, in its order."""
        ...

    def removed_with_keys(self, *, after: str, limit: int) -> list[str]:
        """Return a page of jobs of which the log of removals says that keys of effects were left."""
        ...

    def open_waits(self, job_id: str, *, limit: int) -> list[OpenWait]:
        """Return what a job has open, the oldest first, and when the timer of each fires."""
        ...

    def open_child(self, job_id: str, step: str) -> str | None:
        """Return the first child of a group that has not ended."""
        ...

    def newest_event(self, job_id: str) -> StoredEvent | None:
        """Return the newest fact of a job that is not a step."""
        ...

    def newest_birth(self) -> int:
        """Return when the youngest job was born, by the clock of the store; 0 if there is none."""
        ...

    def acts_log(self, *, after: int, limit: int) -> list[ActRow]:
        """Return a page of the chain of acts, in its order."""
        ...

    def acts_told(self, job_id: str, verb: str) -> list[str]:
        """Return what acts of one kind on a job say."""
        ...

    def acts_end(self) -> LogEnd:
        """Return where the chain of acts ends."""
        ...

    def removals_end(self) -> LogEnd:
        """Return where the log of removals ends."""
        ...

    def removed_jobs(self, *, after: str, behind: int, limit: int) -> list[PrunedRow]:
        """Return a page of whole jobs that the log names behind line `behind`, by their identifiers."""
        ...

    def heads(self, *, after: str, limit: int) -> list[JobHead]:
        """Return a page of jobs by their identifiers, each with the end of its chain."""
        ...

    def newest_fact(self, job_id: str) -> ChainEnd | None:
        """Return the newest fact of a job, be it an event or a step."""
        ...

    def fact_hash(self, job_id: str, n: int) -> bytes | None:
        """Return the hash of the fact at a place of a job; None if nothing stands there."""
        ...

    def trimmed(self, job_id: str) -> PrunedRow | None:
        """Return the newest line in the log of removals about turns of a job; None if it has all of them."""
        ...

    def turn_ends(self, job_id: str, *, limit: int) -> list[StoredEvent]:
        """Return the facts that have ended the oldest turns of a job that are there, in order."""
        ...

    def newest_trim(self, job_id: str) -> StoredEvent | None:
        """Return the fact of a job that tells of its newest trimming; None if there is none."""
        ...

    def lease_clock(self) -> tuple[str, int]:
        """Return the epoch and the instant by which leases are judged now."""
        ...

    def unfinished(self, *, after: str, limit: int) -> list[str]:
        """Return a page of jobs that have not ended and are not held, oldest first."""
        ...

    def held_as(self, hold: str, limit: int) -> list[str]:
        """Return jobs that are held for one reason, oldest first."""
        ...

    def held(self, limit: int) -> list[Book]:
        """Return jobs that wait for a person, newest first."""
        ...

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return the leases of live attempts by worker, those that lost most first."""
        ...

    def running_in_queues(self, limit: int) -> dict[str, int]:
        """Return how many jobs of each queue run, in so many leases at most."""
        ...

    def hooks(self, limit: int) -> list[OwedHook]:
        """Return jobs to which a hook is owed, of any workflow, longest first."""
        ...

    def stale_reports(self) -> StaleReports:
        """Count the reports that were refused because they came too late."""
        ...


class Narrowed(NamedTuple):
    """Which jobs a list is about: those without a parent, the children of one job, or of a time."""

    roots: bool = False
    parent: str | None = None
    since: int | None = None
    until: int | None = None


@runtime_checkable
class Watched(Protocol):
    """What a store tells monitoring in addition; every answer is bounded."""

    def jobs_narrowed(
        self,
        narrowed: Narrowed,
        *,
        tenant_id: str | None,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
    ) -> list[JobRow]:
        """Return a page of jobs by the job that started them and when they were made, newest first."""
        ...

    def ids_with(self, prefix: str, limit: int) -> list[str]:
        """Return identifiers of jobs that begin so; those of children only if the beginning is of one."""
        ...

    def workers(self, limit: int) -> list[WorkerRow]:
        """Return the workers that have reported within a day and did not leave, the one heard last first."""
        ...

    def ended(self, since_ms: int) -> list[EndedCount]:
        """Return how many jobs workers have ended since an instant, by minute and state."""
        ...

    def running(self, limit: int) -> list[RunningJob]:
        """Return the jobs that workers have, the one that runs longest first."""
        ...

    def backlog(self, at_most: int = DEPTH_MAX) -> Backlog:
        """Return what waits for workers, for people, for relays and for the clock, each counted so far."""
        ...


def watched(store: object) -> Watched:
    """Return a store that answers monitoring, or say which ones do."""
    if not isinstance(store, Watched):
        where = getattr(store, "url", "this address")
        raise BadInput(f"the store at {where} keeps nothing to watch; SQLite and PostgreSQL do")
    return store
