"""The store at an address of Azure Tables: requests about protocol jobs, and what is read of them.

Requests about one job are carried one after the other, those about different jobs side by side. What this
process has written last is remembered with its tags, so that the next change of that job need not read it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from tallystick.clock import Clock
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey
from tallystick.core.remote.listing import StepRow, protocol_page
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import CancelProtocol, DueStep, ProtocolRequest, RenewStep, SubmitCommand
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.errors import BadInput, NotFound, StoreError, StoreMissing, TallyError
from tallystick.ids import SystemIds
from tallystick.store.api import (
    Bundle,
    CancelJob,
    ClaimJobs,
    Existing,
    JobRow,
    Outcome,
    RenewLeases,
    StoredEvent,
)
from tallystick.store.azure import keys, reading
from tallystick.store.azure.address import read_address
from tallystick.store.azure.changing import Here, change, renew
from tallystick.store.azure.client import Carrier, Client
from tallystick.store.azure.entities import packed, unpacked
from tallystick.store.azure.heads import Seen
from tallystick.store.azure.inspecting import AzureInspection
from tallystick.store.azure.no_workflows import NoWorkflows, refuse_request
from tallystick.store.azure.requests import Asking, Find, Put, Row, ServiceRefusal, find, get, write
from tallystick.store.azure.submitting import submit
from tallystick.store.azure.sweeping import asked, come, is_due_step, look
from tallystick.store.sql.protocols import is_protocol

_REMEMBERED_MAX: Final = 2_000
_LOOKED_AT_MAX: Final = 64
"""How many jobs that may be due are read at the same time."""

_ABOUT_KEY: Final = ApiKey._fields
T = TypeVar("T")
_Answers: TypeAlias = "list[Outcome | BaseException]"


class AzureStore(NoWorkflows):
    """Protocol jobs in the tables of one storage account."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        create: bool = True,
        credential: object | None = None,
        client: Carrier | None = None,
    ) -> None:
        """Connect, and make the tables if they are not there and may be made."""
        self._clock = clock
        self._ids = SystemIds()
        self.client: Carrier = client or Client(read_address(url), credential)
        self._remembered: OrderedDict[str, Seen] = OrderedDict()
        self._lock = threading.Lock()
        self._pulse = 0
        try:
            if create:
                self.client.create()
            else:
                self.client.ask(get(keys.JOBS, "", ""))
        except StoreMissing:
            self.client.close()
            raise StoreMissing(
                f"there are no tables at {url}; a program that submits makes them", path=url
            ) from None
        except BaseException:
            self.client.close()
            raise

    @property
    def url(self) -> str:
        """Return the address, which has no secrets."""
        return self.client.address.url

    def now(self) -> int:
        """Return the time of this machine: the service has no clock to be asked."""
        return self._clock.wall_ms()

    def pulse(self) -> int:
        """Return how often this process has written; of others nothing is heard."""
        return self._pulse

    def close(self) -> None:
        """Give back the connections and the thread."""
        self.client.close()

    def inspect(self) -> AzureInspection:
        """Return the reads of a check."""
        return AzureInspection(self.client, self.now)

    # --- requests

    def apply(self, batch: Sequence[Bundle], *, again: bool = False) -> _Answers:  # noqa: ARG002 (nothing is ever held)
        """Carry out requests, those about one job in their order; each has an outcome of its own."""
        lines: dict[str, list[int]] = {}
        for at, bundle in enumerate(batch):
            lines.setdefault(_line(bundle, at), []).append(at)
        outcomes: _Answers = [None] * len(batch)
        askings = [self._in_line([batch[at] for at in line]) for line in lines.values()]
        for line, answers in zip(lines.values(), self.client.ask_all(askings), strict=True):
            for place, at in enumerate(line):
                outcomes[at] = answers if isinstance(answers, BaseException) else answers[place]
        self._pulse += 1
        return [_told(outcome) for outcome in outcomes]

    def _in_line(self, bundles: Sequence[Bundle]) -> Asking[_Answers]:
        """Carry out bundles one after the other; one that is refused stops no other."""
        outcomes: _Answers = []
        for bundle in bundles:
            try:
                outcomes.append((yield from self._outcome(bundle)))
            except TallyError as error:
                outcomes.append(error)
        return outcomes

    def _outcome(self, bundle: Bundle) -> Asking[Outcome]:
        request, here = bundle[0], Here(self.now, self._ids.token())
        if is_protocol(bundle):
            if isinstance(request, SubmitCommand):
                return (yield from self._submit(request, here))
            return (yield from self._change(request, here))  # type: ignore[arg-type]  # all that is left of these
        if len(bundle) == 1 and isinstance(request, AddKey | RevokeKey):
            return (yield from self._key(request))
        if len(bundle) == 1 and isinstance(request, CancelJob):
            return (yield from self._cancel(request))
        if all(isinstance(each, ClaimJobs | RenewLeases) for each in bundle):
            return []  # there is nothing that a worker could claim, and no lease that it holds
        raise refuse_request(request)

    def _cancel(self, request: CancelJob) -> Asking[CancelProtocol]:
        """Say what to ask instead, as for a protocol job on every store."""
        if (yield from reading.one_job(request.job_id)) is None:
            raise NotFound(f"there is no job {request.job_id}", job_id=request.job_id)
        return CancelProtocol(request.job_id, request.force)

    def _submit(self, command: SubmitCommand, here: Here) -> Asking[Hearing | Existing]:
        outcome, seen = yield from submit(command, here)
        self._remember(command.job_id, seen)
        return outcome

    def _change(self, request: ProtocolRequest, here: Here) -> Asking[Hearing]:
        if isinstance(request, RenewStep):
            self._remember(request.job_id, None)
            return (yield from renew(request, here)).hearing
        with self._lock:
            carried = self._remembered.pop(request.job_id, None)
        hearing, seen = yield from change(request, here, carried)
        self._remember(request.job_id, seen)
        return hearing

    def _remember(self, job_id: str, seen: Seen | None) -> None:
        """Keep a job that is complete and goes on, and forget any other."""
        with self._lock:
            self._remembered.pop(job_id, None)
            if seen is not None and seen.copy_n == seen.head.n and not seen.head.is_final:
                self._remembered[job_id] = seen
                if len(self._remembered) > _REMEMBERED_MAX:
                    self._remembered.popitem(last=False)

    def _key(self, request: AddKey | RevokeKey) -> Asking[ApiKey | bool]:
        row = yield from get(keys.KEYS, keys.encoded(request.kid), "key")
        if isinstance(request, RevokeKey):
            while row is not None and row.values.get("revoked_at") is None:
                revoked = {**row.values, "revoked_at": self.now()}
                yield from write(Put(keys.KEYS, row.pk, row.rk, revoked, row.etag))
                row = yield from get(keys.KEYS, row.pk, row.rk)
            return row is not None
        now, lives_ms = self.now(), request.lives_ms
        over = None if lives_ms is None else now + lives_ms
        made = ApiKey(
            request.kid, request.tenant_id, request.scopes, request.services, request.secret_hash, now, over
        )
        reply = yield from write(Put(keys.KEYS, keys.encoded(request.kid), "key", packed(made._asdict())))
        if isinstance(reply, ServiceRefusal):
            raise BadInput(f"there is a key {request.kid} already", kid=request.kid)
        return made

    # --- what is due

    def due_steps(self, limit: int) -> list[DueStep]:
        """Return jobs that need the sweep, the longest over first; what is behind is finished on the way."""
        now = self.now()
        found = [
            (picture.active.lease_expires_at or 0, picture.job.job_id)
            for picture in self._due(limit)
            if picture.active is not None and is_due_step(picture, now)
        ]
        return [DueStep(job_id) for _at, job_id in sorted(found)[:limit]]

    def due_directives(self, via: str, limit: int) -> list[OutboxRow]:
        """Return directives for one endpoint that a relay may take now, the longest due first."""
        return self._pushed(lambda row, now: row.via == via and row.next_try_at <= now, limit)

    def stray_directives(self, known: Sequence[str], late_ms: int, limit: int) -> list[OutboxRow]:
        """Return directives for other endpoints than these that no relay took since they became due."""
        return self._pushed(lambda row, now: row.via not in known and row.next_try_at <= now - late_ms, limit)

    def _pushed(self, is_wanted: Callable[[OutboxRow, int], bool], limit: int) -> list[OutboxRow]:
        now, rows = self.now(), list[OutboxRow]()
        for picture in self._due(limit):
            row = picture.pending
            if row is not None and not row.is_pulled and is_wanted(row, now):
                rows.append(row)
        return sorted(rows, key=lambda row: (row.next_try_at, row.outbox_id))[:limit]

    def _due(self, limit: int) -> Iterator[ProtocolPicture]:
        """Yield jobs for which something is due, in about the order of their instants."""
        now = self.now()
        partitions = [f"{each:02d}" for each in range(keys.DUE_PARTITIONS)]
        rows = self._all([find(come(each, now, limit)) for each in partitions])
        hints = sorted((row for page in rows for row in page), key=lambda row: row.rk)
        for at in range(0, len(hints), _LOOKED_AT_MAX):
            chosen = hints[at : at + _LOOKED_AT_MAX]
            for seen in self._all([look(row, Here(self.now, self._ids.token())) for row in chosen]):
                if seen is not None:
                    yield seen.picture

    def _all(self, askings: Sequence[Asking[T]]) -> list[T]:
        """Carry reads side by side; if one fails, all do."""
        answers: list[T] = []
        for answer in self.client.ask_all(askings):
            if isinstance(answer, BaseException):
                raise _told(answer)  # type: ignore[misc]  # an error is told as one
            answers.append(answer)
        return answers

    def asked_directives(self, services: Sequence[str], tenant_id: str | None, limit: int) -> list[OutboxRow]:
        """Return directives that a remote worker of these services may be given, the oldest first."""
        pages = self._all([asked(service, tenant_id, limit) for service in services])
        hints = sorted((row for page in pages for row in page), key=lambda row: row.rk)[: 2 * limit]
        found = self._all([reading.ready(row, self.now()) for row in hints])
        rows = [row for row in found if row is not None]
        return sorted(rows, key=lambda row: (row.next_try_at, row.outbox_id))[:limit]

    def given_directives(self, worker: str, limit: int) -> list[OutboxRow]:
        """Return what this remote worker was given and has not acknowledged, while there is time for that."""
        partition, _row = keys.given_place(worker, "")
        hints = self.client.ask(find(Find(keys.READY, partition, limit=2 * limit)))
        found = self._all([reading.given(row, self.now()) for row in hints])
        return sorted((row for row in found if row is not None), key=lambda row: row.sent_at or 0)[:limit]

    # --- what is read

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a protocol job with its steps and the directive that is not out."""
        seen = self.client.ask(reading.truth(job_id))
        return None if seen is None else seen.picture

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        return self.client.ask(reading.directive(outbox_id))

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        return self.client.ask(reading.one_job(job_id))

    def jobs(
        self,
        *,
        tenant_id: str | None,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
        tag: str | None = None,
    ) -> list[JobRow]:
        """Return a page of the jobs of a tenant, newest first, of a year; protocol jobs have no tags."""
        if tenant_id is None:
            raise BadInput("in Azure Tables jobs are listed for one tenant: name it")
        if tag is not None:
            return []
        return self.client.ask(reading.page_of_jobs(tenant_id, states, handler, after, limit, self.now()))

    def dead(
        self, *, tenant_id: str | None, handler: str | None, after: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs that have failed, newest first."""
        failed = (JobState.FAILED_FINAL.value,)
        return self.jobs(tenant_id=tenant_id, states=failed, handler=handler, after=after, limit=limit)

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        rows = self._all([reading.one_job(job_id) for job_id in job_ids])
        found = zip(job_ids, rows, strict=True)
        return {job_id: row for job_id, row in found if row is None or row.completed_at is not None}

    def steps(self, job_id: str, after: tuple[int, str, int] | None, limit: int) -> list[StepRow]:
        """Return a page of the steps of a job, in the order in which they are worked on."""
        seen = self.client.ask(reading.truth(job_id))
        return [] if seen is None else protocol_page(list(map(reading.step_row, seen.steps)), after, limit)

    def history(self, job_id: str) -> list[StoredEvent]:
        """Return every fact of a job in order."""
        return self.client.ask(reading.history(job_id))

    def traceparent(self, job_id: str) -> str | None:
        """Return the span that a job was submitted in."""
        seen = self.client.ask(reading.truth(job_id))
        return None if seen is None else seen.head.job.traceparent

    def counts(self) -> dict[str, int]:
        """Return nothing: the service counts no rows, and reading all of them is no count."""
        return {}

    def in_flight(self, tenant_id: str, limit: int) -> int:
        """Return about how many jobs of a tenant have not ended, counted up to a limit."""
        partitions = [f"{each:02d}" for each in range(keys.DUE_PARTITIONS)]
        rows = self._all([find(reading.open_jobs(each, tenant_id, limit)) for each in partitions])
        return min(limit, sum(map(len, rows)))

    def is_reserved(self, tenant_id: str, scope: str, value: str) -> bool:
        """Tell whether a reservation is there."""
        place = keys.reservation_place(tenant_id, scope, value)
        return self.client.ask(get(keys.IDEMPOTENCY, *place)) is not None

    def key(self, kid: str) -> ApiKey | None:
        """Return one API key by its name, whether it still works or not."""
        row = self.client.ask(get(keys.KEYS, keys.encoded(kid), "key"))
        return None if row is None else _read_key(row)

    def keys(self) -> list[ApiKey]:
        """Return every API key."""
        return [_read_key(row) for row in self.client.ask(find(Find(keys.KEYS, "", pk_below="~")))]


def _read_key(row: Row) -> ApiKey:
    found = unpacked(row.values)
    return ApiKey._make(found.get(name) for name in _ABOUT_KEY)


def _line(bundle: Bundle, at: int) -> str:
    """Return what requests have in common that are carried out one after the other."""
    request = bundle[0]
    if not is_protocol(bundle):
        return f"key\0{request.kid}" if isinstance(request, AddKey | RevokeKey) else f"alone\0{at}"
    if isinstance(request, SubmitCommand):
        tenant_id, scope, value, *_content = request.reservation
        return f"{tenant_id}\0{scope}\0{value}"
    return request.job_id  # type: ignore[union-attr]  # all of these name their job


def _told(outcome: Outcome | BaseException) -> Outcome | BaseException:
    """Return what became of a request; what no rule expects is an error of the store."""
    if not isinstance(outcome, BaseException) or isinstance(outcome, TallyError):
        return outcome
    error = StoreError(f"Azure Tables: {type(outcome).__name__}: {outcome}")
    error.__cause__ = outcome
    return error
