"""The store at an address of Azure Tables: requests about protocol jobs, and what is read of them.

Requests about one job are carried one after the other, those about different jobs side by side. What this
process has written last is remembered with its tags, so that the next change of that job need not read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final, TypeAlias

from tallystick.clock import Clock
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey
from tallystick.core.remote.listing import StepRow, protocol_page
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import CancelProtocol, ProtocolRequest, RenewStep, SubmitCommand
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.errors import BadInput, NotFound, StoreMissing, TallyError
from tallystick.store.api import (
    Bundle,
    CancelJob,
    ClaimJobs,
    Existing,
    JobRow,
    OfTenant,
    Outcome,
    RenewLeases,
    StoredEvent,
)
from tallystick.store.azure import keys, reading
from tallystick.store.azure.address import read_address
from tallystick.store.azure.changing import Here, change, renew
from tallystick.store.azure.client import Carrier, Client, told
from tallystick.store.azure.due import DueReads
from tallystick.store.azure.heads import Seen
from tallystick.store.azure.inspecting import AzureInspection
from tallystick.store.azure.nothing_kept import NoWorkflows, refuse_request
from tallystick.store.azure.remembering import ApiKeys, OpenJobs, Remembered, every_key
from tallystick.store.azure.requests import Asking, get
from tallystick.store.azure.submitting import submit
from tallystick.store.azure.tail import truth
from tallystick.store.sql.protocols import is_protocol

_REMEMBERED_MAX: Final = 2_000
_Answers: TypeAlias = "list[Outcome | BaseException]"


class AzureStore(DueReads, NoWorkflows):
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
        super().__init__(client or Client(read_address(url), credential), clock)
        monotonic = clock.monotonic
        self._remembered: Remembered[Seen] = Remembered(monotonic, _REMEMBERED_MAX, inf)
        self._keys = ApiKeys(monotonic, self.now)
        self._open_jobs = OpenJobs(monotonic, self.count_open)
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
        return [told(outcome) for outcome in outcomes]

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
        request, *rest = bundle
        if isinstance(request, OfTenant):
            # A job is never removed here, and never changes hands: this stays true until the write.
            owner = yield from reading.one_job(request.job_id)
            request.judge(None if owner is None else owner.tenant_id)
            return (yield from self._outcome(tuple(rest)))
        here = Here(self.now, self._ids.token())
        if is_protocol(bundle):
            if isinstance(request, SubmitCommand):
                return (yield from self._submit(request, here))
            return (yield from self._change(request, here))  # type: ignore[arg-type]  # all that is left of these
        if len(bundle) == 1 and isinstance(request, AddKey | RevokeKey):
            return (yield from self._keys.change(request))
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
        if not isinstance(outcome, Existing):
            self._open_jobs.add(command.job.tenant_id, 1)
        self._remember(command.job_id, seen)
        return outcome

    def _change(self, request: ProtocolRequest, here: Here) -> Asking[Hearing]:
        if isinstance(request, RenewStep):
            self._remembered.forget(request.job_id)
            return (yield from renew(request, here)).hearing
        hearing, seen = yield from change(request, here, self._remembered.forget(request.job_id))
        if seen is not None and seen.head.is_final and seen.head.by == here.token:
            self._open_jobs.add(seen.head.job.tenant_id, -1)
        self._remember(request.job_id, seen)
        return hearing

    def _remember(self, job_id: str, seen: Seen | None) -> None:
        """Keep a job that is complete and goes on; each is forgotten before it is changed."""
        if seen is not None and seen.copy_n == seen.head.n and not seen.head.is_final:
            self._remembered.keep(job_id, seen)

    # --- what is read

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a protocol job with its steps and the directive that is not out."""
        seen = self.client.ask(truth(job_id))
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
        rows = self.ask_all([reading.one_job(job_id) for job_id in job_ids])
        found = zip(job_ids, rows, strict=True)
        return {job_id: row for job_id, row in found if row is None or row.completed_at is not None}

    def steps(self, job_id: str, after: tuple[int, str, int] | None, limit: int) -> list[StepRow]:
        """Return a page of the steps of a job, in the order in which they are worked on."""
        seen = self.client.ask(truth(job_id))
        return [] if seen is None else protocol_page(list(map(reading.step_row, seen.steps)), after, limit)

    def history(self, job_id: str) -> list[StoredEvent]:
        """Return every fact of a job in order."""
        return self.client.ask(reading.history(job_id))

    def traceparent(self, job_id: str) -> str | None:
        """Return the span that a job was submitted in."""
        seen = self.client.ask(truth(job_id))
        return None if seen is None else seen.head.job.traceparent

    def counts(self) -> dict[str, int]:
        """Return nothing: the service counts no rows, and reading all of them is no count."""
        return {}

    def in_flight(self, tenant_id: str, limit: int) -> int:
        """Return about how many jobs of a tenant have not ended, counted up to a limit."""
        return self._open_jobs.count(tenant_id, limit)

    def is_reserved(self, tenant_id: str, scope: str, value: str) -> bool:
        """Tell whether a reservation is there."""
        place = keys.reservation_place(tenant_id, scope, value)
        return self.client.ask(get(keys.IDEMPOTENCY, *place)) is not None

    def key(self, kid: str) -> ApiKey | None:
        """Return one API key by its name, whether it still works or not; as it was some seconds ago."""
        return self.client.ask(self._keys.one(kid))

    def keys(self) -> list[ApiKey]:
        """Return every API key."""
        return self.client.ask(every_key())


def _line(bundle: Bundle, at: int) -> str:
    """Return what requests have in common that are carried out one after the other."""
    request = bundle[0]
    if isinstance(request, OfTenant):
        return request.job_id
    if not is_protocol(bundle):
        return f"key\0{request.kid}" if isinstance(request, AddKey | RevokeKey) else f"alone\0{at}"
    if isinstance(request, SubmitCommand):
        tenant_id, scope, value, *_content = request.reservation
        return f"{tenant_id}\0{scope}\0{value}"
    return request.job_id  # type: ignore[union-attr]  # all of these name their job
