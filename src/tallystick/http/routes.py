"""Every route of the HTTP API, as data: app, OpenAPI document and tests are made of this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tallystick.core.limits import CALLBACK_BYTES_MAX, PAYLOAD_BYTES_MAX
from tallystick.core.remote.keys import ADMIN, READ, WORK, WRITE
from tallystick.core.remote.wire import Ack, Command, ResultReport
from tallystick.http import forms, jobs, operating, remote_work, shown
from tallystick.http.api import Api
from tallystick.http.calls import Call

Answer: TypeAlias = tuple[int, object]
Handler: TypeAlias = Callable[[Api, Call], Awaitable[Answer]]
Reporter: TypeAlias = Callable[[Api, bytes, str], Awaitable[Answer]]
Form: TypeAlias = type[msgspec.Struct]


class ApiRoute(NamedTuple):
    """One route: what it takes, which scope opens it, and what it answers besides errors."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, Form]
    handler: Handler | None = None
    # A callback is opened by its token alone.
    reporter: Reporter | None = None
    # None: it says nothing about any tenant, and needs no key.
    scope: str | None = None
    # Another scope that is let in: what it may ask for is then judged by the body.
    or_scope: str | None = None
    query: Form | None = None
    body: Form | None = None
    errors: tuple[int, ...] = ()
    bytes_max: int = PAYLOAD_BYTES_MAX

    @property
    def name(self) -> str:
        """Return what a client may call it."""
        called = getattr(self.reporter or self.handler, "__name__", "")
        where = self.path.removeprefix("/v1/").partition("/")[0].strip("/")
        return f"{where}_{called}"


def _job(verb: str, summary: str, handler: Handler, body: Form, answers: Mapping[int, Form]) -> ApiRoute:
    return ApiRoute(
        "POST",
        f"/v1/jobs/{{job_id}}/{verb}",
        summary,
        answers,
        handler,
        scope=WRITE,
        body=body,
        errors=(400, 404, 409, 413, 415, 422),
    )


def _look(path: str, summary: str, handler: Handler, answer: Form, query: Form | None = None) -> ApiRoute:
    return ApiRoute("GET", path, summary, {200: answer}, handler, scope=READ, query=query, errors=(404, 422))


def _overview(path: str, summary: str, handler: Handler, answer: Form) -> ApiRoute:
    return ApiRoute("GET", path, summary, {200: answer}, handler, scope=ADMIN)


def _operate(
    path: str, summary: str, handler: Handler, answers: Mapping[int, Form], body: Form = forms.Nothing
) -> ApiRoute:
    errors = (400, 404, 409, 413, 415, 422)
    return ApiRoute("POST", path, summary, answers, handler, scope=ADMIN, body=body, errors=errors)


def _callback(name: str, summary: str, reporter: Reporter, body: Form) -> ApiRoute:
    return ApiRoute(
        "POST",
        f"/v1/callbacks/{name}",
        summary,
        {200: forms.HeardShown, 404: forms.HeardShown, 409: forms.HeardShown},
        reporter=reporter,
        body=body,
        errors=(400, 413, 415, 422),
        bytes_max=CALLBACK_BYTES_MAX,
    )


_MADE: Final = {202: forms.Submitted, 200: forms.Submitted}
_SHOWN: Final = {200: shown.JobShown}
_QUEUE: Final = {200: forms.QueueShown}
_SCHEDULE: Final = {200: forms.ScheduleShown}

ENDPOINTS: Final = (
    ApiRoute(
        "POST",
        "/v1/commands",
        "Make a job of a command; the same content, or the same key, is the same job.",
        _MADE,
        remote_work.command,
        scope=WRITE,
        body=Command,
        errors=(400, 404, 409, 413, 415, 422, 429),
    ),
    ApiRoute(
        "POST",
        "/v1/jobs",
        "Make a job of a workflow.",
        _MADE,
        jobs.submit,
        scope=WRITE,
        body=forms.JobForm,
        errors=(400, 404, 409, 413, 415, 422),
    ),
    # Before the routes of one job, whose name it is not.
    _operate(
        "/v1/jobs/bulk",
        "Cancel, pause, resume or retry all jobs that match, or count them.",
        operating.bulk,
        {200: forms.Reached},
        forms.Bulk,
    ),
    _look("/v1/jobs", "List jobs, newest first.", jobs.page, shown.JobsPage, forms.JobsQuery),
    _look("/v1/jobs/{job_id}", "Show one job.", jobs.show, shown.JobShown),
    _look("/v1/jobs/{job_id}/steps", "List its steps.", jobs.steps, shown.StepsPage, forms.StepsQuery),
    _look(
        "/v1/jobs/{job_id}/history",
        "Tell what happened to it, fact by fact.",
        jobs.history,
        shown.HistoryPage,
        forms.HistoryQuery,
    ),
    _look("/v1/jobs/{job_id}/why", "Say why it stands where it stands.", jobs.why, forms.WhyShown),
    # By force it is a matter of operators, who need not be able to submit jobs.
    _job("cancel", "Ask it to end.", jobs.cancel, forms.Cancelling, _SHOWN)._replace(or_scope=ADMIN),
    _job("pause", "Hold it until it is resumed.", jobs.pause, forms.Pausing, _SHOWN),
    _job("resume", "Let it go on.", jobs.resume, forms.Nothing, _SHOWN),
    _job("retry", "Make a new job in its place, if it has failed.", jobs.retry, forms.Nothing, _MADE),
    _job("fork", "Make a new job from what it recorded before a step.", jobs.fork, forms.ForkForm, _MADE),
    _job("signals/{name}", "Send it a signal.", jobs.send, forms.Signal, {202: forms.Sent}),
    ApiRoute(
        "GET",
        "/v1/directives",
        "Ask for work, as a remote worker; what is given is out, and the time for its ACK begins.",
        {200: forms.DirectivesGiven},
        remote_work.directives,
        scope=WORK,
        query=forms.DirectivesQuery,
        errors=(422,),
    ),
    ApiRoute(
        "POST",
        "/v1/callbacks",
        "Make many reports at once, as a remote worker; each has its own token and its own answer.",
        {200: forms.ReportsHeard},
        remote_work.reports,
        scope=WORK,
        body=forms.ReportsForm,
        errors=(400, 413, 415, 422),
    ),
    _callback("ack", "Report that the work has begun.", remote_work.ack, Ack),
    _callback("heartbeat", "Report that the work goes on.", remote_work.heartbeat, Ack),
    _callback("result", "Report how the work has ended.", remote_work.result, ResultReport),
    _operate(
        "/v1/outbox/{outbox_id}/redrive",
        "Make a new job that asks again for the step of a directive that could not be published.",
        remote_work.redriven,
        _MADE,
    ),
    _look("/v1/effects", "List effects.", operating.effects, shown.EffectsPage, forms.EffectsQuery),
    _operate(
        "/v1/jobs/{job_id}/resolve",
        "Say what came of an effect in doubt.",
        operating.resolve,
        _SHOWN,
        forms.ResolveForm,
    ),
    _overview("/v1/queues", "List the queues that have limits.", operating.queues, forms.QueuesPage),
    _operate("/v1/queues/{queue}", "Set limits of a queue.", operating.set_queue, _QUEUE, forms.QueueLimits),
    _operate("/v1/queues/{queue}/pause", "Let no job of it be claimed.", operating.pause_queue, _QUEUE),
    _operate("/v1/queues/{queue}/resume", "Let its jobs be claimed again.", operating.resume_queue, _QUEUE),
    _operate("/v1/queues/{queue}/reset", "Let declared limits count again.", operating.reset_queue, _QUEUE),
    _overview("/v1/schedules", "List the schedules.", operating.schedules, forms.SchedulesPage),
    _operate(
        "/v1/schedules/{schedule}/pause", "Let no tick become a job.", operating.pause_schedule, _SCHEDULE
    ),
    _operate(
        "/v1/schedules/{schedule}/resume", "Go on with the next tick.", operating.resume_schedule, _SCHEDULE
    ),
    _operate(
        "/v1/schedules/{schedule}/trigger", "Make a job now.", operating.trigger, {202: forms.Submitted}
    ),
    _operate(
        "/v1/schedules/{schedule}/backfill",
        "Make a job of each tick of a time that has none.",
        operating.backfill,
        {200: forms.Backfilled},
        forms.Backfilling,
    ),
    ApiRoute("GET", "/healthz", "Whether the process answers.", {200: forms.HealthShown}, operating.alive),
    ApiRoute("GET", "/readyz", "Whether the store answers.", {200: forms.HealthShown}, operating.ready),
)
