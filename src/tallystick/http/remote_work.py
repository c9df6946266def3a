"""Routes of remote work: commands, directives for workers that ask, and what they report."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from tallystick import crash
from tallystick.app.remote.redriving import redrive
from tallystick.core.limits import CALLBACK_BYTES_MAX, JSON_KEYS_MAX, check_size
from tallystick.core.remote.keys import listed
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.reports import REFUSED, ReportAnswer, read_report, told
from tallystick.core.remote.requests import DeliverDirective, StepFence
from tallystick.core.remote.rows import OutboxRow
from tallystick.core.remote.wire import Command, read
from tallystick.engine.observe import PublishTried
from tallystick.errors import InvariantBroken, NotAllowed, NotKnown, TallyError
from tallystick.http import forms
from tallystick.http.api import WRITE_AFTER, Api
from tallystick.http.calls import Call
from tallystick.http.forms import DirectivesQuery, Submitted
from tallystick.remote.publishers.endpoint import REPORTS
from tallystick.store.api import Outcome

Answer = tuple[int, object]


async def command(api: Api, call: Call) -> Answer:
    """Make a job of a command."""
    said = read(Command, call.body, "command", JSON_KEYS_MAX)
    call.tenant(said.tenant_id)
    protocol = api.app.taking(said)
    request = protocol.request(said)
    outcome = await api.flights.submit(request, lambda: api.write(request))
    api.runtime.publish(outcome)
    job = protocol.made(request, outcome)
    if job.created:
        api.news.ring()
    return 202 if job.created else 200, Submitted(job.id, job.created)


async def redriven(api: Api, call: Call) -> Answer:
    """Make a new job that asks again for the step of a directive that could not be published."""
    call.form(forms.Nothing)
    about = (api.app, call.text("outbox_id"), call.only_tenant)
    job = await asyncio.to_thread(redrive, *about, by=call.who)
    api.news.ring()
    return 202 if job.created else 200, Submitted(job.id, job.created)


async def directives(api: Api, call: Call) -> Answer:
    """Give directives to a remote worker: those that it was given and did not acknowledge, then new ones.

    What is given is out in the same commit, and the time for its ACK begins.
    """
    asked = call.query(DirectivesQuery)
    key = call.key
    if key is None:
        raise NotKnown
    allowed = listed(key.services)
    for service in asked.service:
        if service not in allowed:
            raise NotAllowed(f"this key is not for the service {service}", service=service)
    poll = _Poll(api, call, f"{key.kid}/{asked.worker}", asked.service or allowed, asked)
    loop = asyncio.get_running_loop()
    clock = api.runtime.clock
    until = clock.monotonic() + asked.wait
    gone = loop.create_task(_gone(call))
    try:
        while not gone.done():
            found = await poll.take()
            rest = until - clock.monotonic()
            if found or rest <= 0 or api.news.closed:
                return 200, {"directives": found, **({"more": True} if poll.has_more else {})}
            news = loop.create_task(api.news.heard(rest))
            await asyncio.wait((news, gone), return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
    finally:
        gone.cancel()
    return 200, {"directives": []}


async def _gone(call: Call) -> None:
    """Return when the client has closed the connection: it is to be given nothing."""
    while (await call.request.receive())["type"] != "http.disconnect":
        continue


class _Poll:
    """One remote worker that asks."""

    def __init__(
        self, api: Api, call: Call, worker: str, services: Sequence[str], asked: DirectivesQuery
    ) -> None:
        self._api = api
        self._worker = worker
        self._services = services
        self._tenant = call.only_tenant
        self._most = asked.max
        self._again = asked.again
        # Whether it was given more before than one answer holds.
        self.has_more = False
        request = call.request
        base = f"{request.url.scheme}://{request.headers['host']}{request.scope.get('root_path', '')}"
        self._urls = {name: f"{base}/v1/callbacks/{name}" for name in REPORTS}

    async def take(self) -> list[dict[str, object]]:
        """Return what there is for this worker now."""
        async with self._api.looking:
            given, asked = await asyncio.to_thread(self._look)
            told = [self._told(row, self._api.now()) for row in given if self._is_mine(row)]
            mine = [row for row in asked if row.outbox_id not in self._api.offered][: self._most - len(told)]
            self._api.offered.update(row.outbox_id for row in mine)
        try:
            hearings = await asyncio.gather(*map(self._delivered, mine))
            if mine:
                crash.point(WRITE_AFTER)
        finally:
            self._api.offered.difference_update(row.outbox_id for row in mine)
        for hearing in hearings:
            if (
                isinstance(hearing, Hearing)
                and hearing.heard is Heard.TAKEN
                and hearing.directive is not None
            ):
                told.append(self._told(hearing.directive, hearing.lease_expires_at or self._api.now()))
                if PublishTried in (observers := self._api.runtime.observers).wanted:
                    observers.tell(PublishTried(hearing.directive.service, "given"))
        return told

    def _look(self) -> tuple[list[OutboxRow], list[OutboxRow]]:
        store = self._api.protocols
        given = store.given_directives(self._worker, self._most) if self._again else []
        self.has_more = len(given) >= self._most
        if self.has_more:
            return given, []
        # A few more, because others that ask here may be given the first ones.
        return given, store.asked_directives(
            self._services, self._tenant, self._most + len(self._api.offered)
        )

    def _is_mine(self, row: OutboxRow) -> bool:
        return row.service in self._services and self._tenant in (None, row.tenant_id)

    def _delivered(self, row: OutboxRow) -> asyncio.Future[Outcome]:
        request = DeliverDirective(row.job_id, row.step_id, row.attempt_no, self._worker)
        return self._api.begin_write(request)

    def _told(self, row: OutboxRow, lease_expires_at: int) -> dict[str, object]:
        """Return a directive as it leaves: with the token and the addresses for its reports."""
        said: dict[str, object] = dict(msgspec.json.decode(row.payload, type=dict[str, msgspec.Raw]))
        fence = StepFence(row.job_id, row.step_id, row.attempt_no, row.lease_id)
        said["token"] = self._api.token(row.tenant_id, fence, lease_expires_at)
        said["callback_urls"] = self._urls
        return said


async def reports(api: Api, call: Call) -> Answer:
    """Take many reports of a remote worker; they share a flush, and each is answered as if it were alone."""
    said = call.form(forms.ReportsForm).reports
    # Of a small request no part is too large.
    limit = CALLBACK_BYTES_MAX if len(call.body) > CALLBACK_BYTES_MAX else None
    begun = [_begun(api, each, limit) for each in said]
    return 200, forms.ReportsHeard([await _answered(api, each) for each in begun])


def _begun(api: Api, said: forms.Reported, bytes_max: int | None) -> _ArrivingReport | TallyError:
    """Begin to write one of many reports; what is wrong with it is its own answer."""
    try:
        if bytes_max is not None:
            check_size("report", len(msgspec.json.encode(said.report)), bytes_max)
        return _ArrivingReport(api, said.token, said.kind, said.report)
    except TallyError as error:
        return error


async def _answered(api: Api, begun: _ArrivingReport | TallyError) -> forms.ReportHeard:
    try:
        if isinstance(begun, TallyError):
            raise begun
        return forms.ReportHeard(*await begun.told(api))
    except TallyError as error:
        detail = error.message if error.http_status < 500 else None
        return forms.ReportHeard(error.http_status, code=error.code, detail=detail)


async def ack(api: Api, body: bytes, token: str) -> Answer:
    """Take the report that a remote worker has begun."""
    return await _report(api, token, "ack", body)


async def heartbeat(api: Api, body: bytes, token: str) -> Answer:
    """Take the report that a remote worker is still at it."""
    return await _report(api, token, "heartbeat", body)


async def result(api: Api, body: bytes, token: str) -> Answer:
    """Take the RESULT of a remote worker."""
    return await _report(api, token, "result", body)


async def _report(api: Api, token: str, kind: str, body: bytes) -> Answer:
    """Take a report whose bearer may make it; the answer says no more than what became of it."""
    status, heard, cancelling, lease_ms, fresh = await _ArrivingReport(api, token, kind, body).told(api)
    if heard is None:
        raise NotKnown
    return status, forms.HeardShown(heard, bool(cancelling), lease_ms, fresh)


class _ArrivingReport:
    """A report on its way to the books, if its token is right."""

    def __init__(self, api: Api, token: str, kind: str, body: bytes | object) -> None:
        runtime = api.runtime
        try:
            self._request = read_report(
                kind, body, runtime.ids.token(), relays=runtime.relays, keys_max=JSON_KEYS_MAX
            )
        except TallyError:
            # What is wrong with a report is said to the bearer of its token alone.
            if isinstance(body, bytes):
                api.check_bearer(token, body)
            raise
        self._tenant = api.tenant(token, self._request.fence)
        self._outcome = None if self._tenant is None else api.begin_write(self._request)

    async def told(self, api: Api) -> ReportAnswer:
        """Return what its sender is told, once that is durable."""
        if self._outcome is None or self._tenant is None:
            return REFUSED
        hearing, tenant_id, fence = await self._outcome, self._tenant, self._request.fence
        crash.point(WRITE_AFTER)
        if not isinstance(hearing, Hearing):
            raise InvariantBroken(f"a report was answered with {hearing!r}")
        api.runtime.publish(hearing)
        if hearing.directive is not None:
            api.news.ring()
        return told(
            self._request,
            hearing,
            lambda ends: (max(0, ends - api.now()), api.token(tenant_id, fence, ends)),
        )
