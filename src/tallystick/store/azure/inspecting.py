"""The reads of a check on Azure Tables, and what can be wrong there alone: rows that did not follow a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final, TypeVar

from tallystick.core.audit.book import Book, JobRest, Kept, StepRest, WholeJob
from tallystick.core.audit.removals import ChainEnd
from tallystick.core.limits import PAGE_ROWS_MAX
from tallystick.core.pictures import Message, Place
from tallystick.core.remote.rows import WITHDRAWN, OutboxLag, OutboxRow, ProtocolJob, ProtocolPicture
from tallystick.errors import BadInput
from tallystick.store.api import JobRow, NewJob, StoredEvent
from tallystick.store.azure import keys, reading
from tallystick.store.azure.client import Carrier, asked_together
from tallystick.store.azure.entities import read_as, unpacked
from tallystick.store.azure.heads import Head, KeptStep, Seen, read_head
from tallystick.store.azure.nothing_kept import NothingKept
from tallystick.store.azure.requests import Asking, Condition, Find, Row, find, get
from tallystick.store.azure.tail import truth
from tallystick.store.inspection import Health, Inspection, JobHead, Reserved, StaleReports

T = TypeVar("T")

_PAGE_ROWS: Final = 500
_EXAMINE_MS: Final = 10_000
"""For how long jobs are examined, unless all of them are to be."""

_BEHIND_MS: Final = 60_000
"""For how long a job may be behind its truth before that is worth a sentence: a change takes moments."""


class AzureInspection(NothingKept):
    """The reads of a check."""

    def __init__(self, client: Carrier, now: Callable[[], int]) -> None:
        """Look through this client."""
        self._ask = client.ask
        self._client = client
        self._url = client.address.url
        self._now = now

    def at_once(self, ask: Callable[[Inspection], T]) -> T:
        """Let a function read; what it reads is of about one moment, because nothing here keeps one."""
        return ask(self)

    def lease_clock(self) -> tuple[str, int]:
        """Return the instant of this machine: no worker holds a lease here."""
        return "", self._now()

    def health(self, jobs_max: int | None = None) -> Health:
        """Look whether all that should follow a job does, of jobs that go on and of the newest others."""
        until = inf if jobs_max is None else self._now() + _EXAMINE_MS
        most = inf if jobs_max is None else jobs_max
        problems = self._left_behind(self._ask(reading.heads(None, _PAGE_ROWS, self._now())))
        examined, after, is_all = 0, None, False
        while not is_all and examined < most and self._now() < until:
            rows = self._ask(reading.heads(after, _PAGE_ROWS, self._now(), reading.OPEN))
            chosen = rows[: int(min(_PAGE_ROWS, most - examined))]
            problems += self._left_behind(chosen)
            examined, is_all = examined + len(chosen), len(rows) < _PAGE_ROWS and rows == chosen
            after = rows[-1].pk if rows else None
        facts: dict[str, object] = {"address": self._url, "open_jobs_examined": examined}
        bounded = f"{examined:,} open jobs were examined, the newest; `tally doctor --all` examines all"
        return Health(facts, tuple(dict.fromkeys(problems)), () if is_all else (bounded,))

    def _left_behind(self, rows: Sequence[Row]) -> list[str]:
        found = asked_together(self._client, [_behind(row, self._now()) for row in rows])
        return [problem for problems in found for problem in problems]

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        return self._ask(reading.one_job(job_id))

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a job with its steps and the directive that is not out."""
        seen = self._seen(job_id)
        return None if seen is None else seen.picture

    def home(self, job_id: str) -> ProtocolJob | None:
        """Return what directives say of a job."""
        seen = self._seen(job_id)
        return None if seen is None else seen.head.job

    def book(self, job_id: str) -> Book | None:
        """Return the book of one job."""
        seen = self._seen(job_id)
        return None if seen is None else _book(seen.head)

    def books(self, *, after: str | None, limit: int) -> list[Book]:
        """Return a page of books, newest job first."""
        rows = self._ask(reading.heads(after, limit, self._now()))
        heads = [read_head(row.values) for row in rows]
        return [_book(head) for head in heads if head is not None]

    def whole(self, job_id: str) -> WholeJob | None:
        """Return what was submitted and all else that the head of a job says."""
        seen = self._seen(job_id)
        return None if seen is None else _whole(seen.head)

    def facts(self, job_id: str, *, after: int, limit: int) -> list[StoredEvent]:
        """Return the facts of a job that follow number `after`, in order."""
        return self._ask(reading.history(job_id, after, limit))

    def newest_event(self, job_id: str) -> StoredEvent | None:
        """Return the newest fact of a job."""
        seen = self._seen(job_id)
        found = [] if seen is None else self.facts(job_id, after=seen.head.facts - 1, limit=1)
        return found[0] if found else None

    def newest_fact(self, job_id: str) -> ChainEnd | None:
        """Return the end of the chain of a job, as its newest fact has it."""
        found = self.newest_event(job_id)
        return None if found is None else ChainEnd(job_id, found.n, found.event_hash)

    def fact_hash(self, job_id: str, n: int) -> bytes | None:
        """Return the hash of the fact at a place of a job."""
        found = self.facts(job_id, after=n - 1, limit=1)
        return found[0].event_hash if found and found[0].n == n else None

    def newest_birth(self) -> int:
        """Return when the youngest job was born; 0 if there is none."""
        return next((book.updated_at for book in self.books(after=None, limit=1)), 0)

    def heads(self, *, after: str, limit: int) -> list[JobHead]:
        """Return a page of jobs by their identifiers, each with the end of its chain."""
        first = keys.following(keys.encoded(after)) if after else ""
        asked = Find(keys.STEPS, first, keys.HEAD, f"{keys.HEAD}!", limit, pk_below=keys.JOIN)
        found = [read_head(row.values) for row in self._ask(find(asked))]
        return [
            JobHead(
                ChainEnd(head.job.job_id, head.facts, bytes.fromhex(head.chain)),
                head.created_at,
                head.job.completed_at,
            )
            for head in found
            if head is not None
        ]

    def messages(self, job_id: str, *, after: str, limit: int) -> list[Message]:
        """Return the messages of a job behind a guid, in order."""
        return [each for each in self._words(job_id) if each.guid > after][:limit]

    def message(self, guid: str) -> Message | None:
        """Return one message, by way of the job that its guid names."""
        _kind, _, rest = guid.partition(":")
        job_id = rest.partition(":")[0]
        return next((each for each in self._words(job_id) if each.guid == guid), None)

    def step_rests(self, job_id: str, *, after: Place, limit: int) -> list[StepRest]:
        """Return the steps of a job behind a place, in order."""
        seen = self._seen(job_id)
        rests = [] if seen is None else sorted(map(_rest, seen.steps))
        return [rest for rest in rests if (rest.dimension, rest.name, rest.occurrence) > after][:limit]

    def directives(self, job_id: str) -> list[tuple[OutboxRow, int]]:
        """Return the directives of a job, and when each was last written."""
        seen = self._seen(job_id)
        if seen is None:
            return []
        first = f"{keys.encoded(job_id)}{keys.JOIN}"
        rows = self._ask(find(Find(keys.OUTBOX, seen.head.partition, first, f"{first}{keys.JOIN}")))
        return [(read_as(OutboxRow, row.values), unpacked(row.values)["updated_at"]) for row in rows]

    def count_directives(self, job_id: str) -> int:
        """Return how many directives a job has made."""
        return len(self.directives(job_id))

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        return self._ask(reading.directive(outbox_id))

    def waiting_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives of a tenant that are not out."""
        return self._outbox(tenant_id, service, after, limit, ("state", "eq", "PENDING"))

    def dead_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives of a tenant that could not be published."""
        dead = (("state", "eq", "FAILED_FINAL"), ("reason", "ne", WITHDRAWN))
        return self._outbox(tenant_id, service, after, limit, *dead)

    def _outbox(
        self, tenant_id: str | None, service: str | None, after: str, limit: int, *where: Condition
    ) -> list[OutboxRow]:
        """Read directives of the last two months, by their jobs: each has one that waits or is dead."""
        if tenant_id is None:
            raise BadInput("in Azure Tables directives are listed for one tenant: name it")
        wanted = where if service is None else (*where, ("service", "eq", service))
        low = f"{keys.encoded(after.partition(':')[0])}{keys.JOIN}{keys.JOIN}" if after else ""
        months = (keys.key(tenant_id, each) for each in keys.months_back(keys.month_of(self._now()), 2))
        found = [
            read_as(OutboxRow, row.values)
            for month in months
            for row in self._ask(find(Find(keys.OUTBOX, month, low, limit=limit, where=wanted)))
        ]
        return sorted(found)[:limit]

    def outbox_lag(self, tenant_id: str | None) -> list[OutboxLag]:
        """Return how late the outbox of a tenant is, for each way of its directives: up to a thousand."""
        waits = self.waiting_directives(tenant_id, None, after="", limit=PAGE_ROWS_MAX)
        dead = self.dead_directives(tenant_id, None, after="", limit=PAGE_ROWS_MAX)
        ways = sorted({(row.service, row.via) for row in (*waits, *dead)})
        lags = []
        for way in ways:
            mine = [row.next_try_at for row in waits if (row.service, row.via) == way]
            gone = sum((row.service, row.via) == way for row in dead)
            lags.append(OutboxLag(*way, len(mine), min(mine, default=None), gone))
        return lags

    def kept(self, tenant_id: str, scope: str, value: str) -> Kept | None:
        """Return a reservation."""
        row = self._ask(get(keys.IDEMPOTENCY, *keys.reservation_place(tenant_id, scope, value)))
        return None if row is None else read_as(Kept, row.values)

    def reserved(self, *, after: tuple[str, str, str], limit: int) -> list[Reserved]:
        """Return a page of reservations behind one, with what the job of each is known by."""
        found: list[Reserved] = []
        for kept in self._ask(_reservations(after, limit)):
            seen = self._seen(kept.job_id)
            about = None if seen is None else seen.head.about
            tenant_id = None if seen is None else seen.head.job.tenant_id
            key, hashed = (None, None) if about is None else (about.idempotency_key, about.idempotency_hash)
            found.append(Reserved(kept, tenant_id, key, hashed))
        return found

    def strays(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Return the next identifiers that facts have for their job, and whether there is such a job."""
        first = keys.following(keys.encoded(after)) if after else ""
        asked = Find(keys.EVENTS, first, keys.event_row(1), keys.event_row(2), limit, pk_below=keys.JOIN)
        rows = self._ask(find(asked))
        return [(row.pk, self._seen(row.pk) is not None) for row in rows]

    def stale_reports(self) -> StaleReports:
        """Count the reports that were refused because they came too late, up to ten thousand."""
        rows = self._ask(find(Find(keys.STALE, "", limit=10_000, pk_below=keys.JOIN)))
        return StaleReports(len(rows), max((unpacked(row.values)["at"] for row in rows), default=None))

    def _seen(self, job_id: str) -> Seen | None:
        return self._ask(truth(job_id))

    def _words(self, job_id: str) -> list[Message]:
        seen = self._seen(job_id)
        words = [] if seen is None else [seen.head.message, *(kept.message for kept in seen.steps)]
        return sorted((each for each in words if each is not None), key=lambda each: each.guid)


def _reservations(after: tuple[str, str, str], limit: int) -> Asking[list[Kept]]:
    """Read a page of reservations, by their partitions and rows."""
    tenant, row = keys.reservation_place(*after) if any(after) else ("", "")
    rest = Find(keys.IDEMPOTENCY, tenant, keys.following(row), limit=limit)
    found = (yield from find(rest)) if tenant else []
    if len(found) < limit:
        first = keys.following(tenant) if tenant else ""
        found += yield from find(Find(keys.IDEMPOTENCY, first, limit=limit - len(found), pk_below=keys.JOIN))
    return [read_as(Kept, row.values) for row in found]


def _behind(row: Row, now: int) -> Asking[list[str]]:
    """Say what should have followed a job and did not, for longer than a change takes."""
    head, found = read_head(row.values), list[str]()
    if head is None or now - head.updated_at < _BEHIND_MS:
        return []
    job_id = head.job.job_id
    copy = yield from get(keys.JOBS, head.partition, row.pk)
    n = 0 if copy is None else copy.values["n"]
    if n != head.n:
        found.append(
            f"job {job_id}: its copy is at version {n} and it is at {head.n}; "
            "start a worker, whose sweep finishes it"
        )
    if not head.is_final and (yield from get(keys.DUE, keys.due_partition(job_id), head.armed)) is None:
        found.append(
            f"job {job_id}: no row says when to look at it; an ACK, a RESULT or `tally cancel` mends it"
        )
    if found:
        again = yield from get(keys.STEPS, row.pk, row.rk)
        return found if again is not None and again.etag == row.etag else []  # it goes on meanwhile
    return []


def _book(head: Head) -> Book:
    job = head.job
    return Book(
        job.job_id, job.state, 0, 0, None, None, job.semaphore, job.root_ledger, job.start_ledger,
        head.created_at, None, job.error_code, 1, head.facts, bytes.fromhex(head.chain), job.rev, job.options,
        head.about.canon_version, 0, 0, True, head.updated_at,
    )  # fmt: skip


def _whole(head: Head) -> WholeJob:
    job, about = head.job, head.about
    born = NewJob(
        job.job_id, job.payload, None, None, head.created_at, job.tenant_id, "protocol", job.protocol_id, "",  # type: ignore[arg-type]  # a protocol job is never ready
        "default", 5, job.options, about.request_type, job.input_ref, job.output_ref, about.schema_version,
        about.idempotency_key, about.idempotency_hash, about.canon_version, job.correlation_id,
        job.traceparent,
    )  # fmt: skip
    rest = JobRest(
        None, 0, head.updated_at, job.completed_at, job.result, job.error, job.error_message, job.protocol_id,
        job.mode, job.doc_id, job.current_step_id, job.current_step_index, job.attempts_total, None,
        about.retry_of, None, None,
    )  # fmt: skip
    return WholeJob(born, rest)


def _rest(kept: KeptStep) -> StepRest:
    told = dict.fromkeys(StepRest._fields) | reading.step_told(kept)
    told |= {"has_hash": False, "has_result": kept.step.result is not None}
    return StepRest._make(told[name] for name in StepRest._fields)
