"""Routes about jobs: looked at, submitted, and told what to do."""

from __future__ import annotations

import asyncio
from typing import Any

from tallystick.app.api.control import DEFAULT_WHY, act_on, guard_of, noted
from tallystick.app.api.job import Job
from tallystick.app.api.workflows import AsyncWorkflow, Workflow
from tallystick.app.values.signature import Signature
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.keys import ADMIN, WRITE
from tallystick.core.remote.listing import step_key
from tallystick.core.remote.requests import CancelProtocol
from tallystick.core.watching.acts import About
from tallystick.defaults import CANCEL_GRACE
from tallystick.errors import NotFound, UnknownWorkflow
from tallystick.http.api import Api
from tallystick.http.calls import Call
from tallystick.http.forms import (
    Cancelling,
    ForkForm,
    HistoryQuery,
    JobForm,
    JobsQuery,
    Nothing,
    Pausing,
    Sent,
    Signal,
    StepsQuery,
    Submitted,
    WhyShown,
)
from tallystick.http.shown import (
    FactShown,
    HistoryPage,
    JobShown,
    JobsPage,
    StepsPage,
    fact_shown,
    job_shown,
    step_shown,
)
from tallystick.store.api import Bundle, JobRow

Answer = tuple[int, object]


async def submit(api: Api, call: Call) -> Answer:
    """Make a job of a workflow."""
    wanted = call.form(JobForm)
    workflow = _workflow(api, wanted)
    placed, named = (
        ((), wanted.arguments) if isinstance(wanted.arguments, dict) else (tuple(wanted.arguments), {})
    )
    signature = Signature(workflow.fn)
    args, kwargs = signature.decode(signature.encode_data(placed, named))
    ready = workflow.opts(
        tenant=call.tenant(wanted.tenant),
        idempotency_key=wanted.idempotency_key,
        idempotent=wanted.idempotent if wanted.idempotency_key is None else None,
        queue=wanted.queue,
        priority=wanted.priority,
        delay=wanted.delay,
        deadline=wanted.deadline,
        tags=wanted.tags or None,
    )
    job = await ready.submit_aio(*args, **kwargs)
    return _submitted(job)


def _workflow(api: Api, wanted: JobForm) -> Workflow[..., Any] | AsyncWorkflow[..., Any]:
    found = {
        version: workflow
        for (name, version), workflow in api.app.workflows.items()
        if name == wanted.workflow and wanted.version in (None, version)
    }
    if len(found) != 1:
        why = "say which version" if found else "there is none of that name here"
        raise UnknownWorkflow(f"no single workflow {wanted.workflow!r}: {why}", workflow=wanted.workflow)
    return next(iter(found.values()))


async def page(api: Api, call: Call) -> Answer:
    """List jobs of one tenant, newest first."""
    asked = call.query(JobsQuery)
    rows = await asyncio.to_thread(
        api.runtime.store.jobs,
        tenant_id=call.tenant(asked.tenant),
        states=[state.value for state in asked.state],
        handler=asked.workflow,
        after=asked.after,
        limit=asked.limit + 1,
        tag=asked.tag,
    )
    shown = [job_shown(row) for row in rows[: asked.limit]]
    return 200, JobsPage(shown, shown[-1].job_id if len(rows) > asked.limit else None)


async def show(api: Api, call: Call) -> Answer:
    """Show one job."""
    return 200, job_shown((await find(api, call))[1])


async def steps(api: Api, call: Call) -> Answer:
    """List the steps of a job."""
    asked = call.query(StepsQuery)
    job, _row = await find(api, call)
    after = step_key(asked.after) if asked.after else None
    rows = await asyncio.to_thread(api.runtime.store.steps, job.id, after, asked.limit + 1)
    shown = [step_shown(row) for row in rows[: asked.limit]]
    more = rows[asked.limit - 1].key if len(rows) > asked.limit else None
    return 200, StepsPage(shown, more)


async def history(api: Api, call: Call) -> Answer:
    """Tell what happened to a job, fact by fact."""
    asked = call.query(HistoryQuery)
    job, _row = await find(api, call)
    look = api.runtime.store.inspect().facts
    facts = await asyncio.to_thread(look, job.id, after=asked.after, limit=asked.limit + 1)
    shown: list[FactShown] = [fact_shown(fact) for fact in facts[: asked.limit]]
    return 200, HistoryPage(shown, shown[-1].n if len(facts) > asked.limit else None)


async def why(api: Api, call: Call) -> Answer:
    """Say why a job stands where it stands."""
    job, row = await find(api, call)
    return 200, WhyShown(job.id, JobState(row.state), str(await job.why_aio()))


async def cancel(api: Api, call: Call) -> Answer:
    """Ask a job to end."""
    asked = call.form(Cancelling)
    call.check(ADMIN if asked.force else WRITE)
    job, row = await find(api, call)
    if asked.force and await asyncio.to_thread(api.protocols.protocol, job.id) is not None:
        forced = act_on(About.JOB, job.id, "cancel", call.who, "by force")
        wanted: Bundle = (*guard_of(job.id, call.only_tenant), CancelProtocol(job.id, force=True))
        await api.write(*noted(wanted, forced, api.runtime.store))
        return await _now(api, job)
    if row.completed_at is None:
        grace = CANCEL_GRACE if asked.grace is None else asked.grace
        await job.cancel_aio(grace=grace, force=asked.force, by=call.who)
    return await _now(api, job)


async def pause(api: Api, call: Call) -> Answer:
    """Hold a job."""
    asked = call.form(Pausing)
    job, row = await find(api, call)
    if row.completed_at is None:
        await job.pause_aio(DEFAULT_WHY if asked.why is None else asked.why, by=call.who)
    return await _now(api, job)


async def resume(api: Api, call: Call) -> Answer:
    """Let a held job go on."""
    call.form(Nothing)
    job, row = await find(api, call)
    if row.completed_at is None:
        await job.resume_aio(by=call.who)
    return await _now(api, job)


async def retry(api: Api, call: Call) -> Answer:
    """Make a new job in the place of one that has failed."""
    call.form(Nothing)
    job, _row = await find(api, call)
    return _submitted(await job.retry_aio(by=call.who))


async def fork(api: Api, call: Call) -> Answer:
    """Make a new job from what another has recorded before a step."""
    asked = call.form(ForkForm)
    job, _row = await find(api, call)
    return _submitted(await job.fork_aio(at=asked.at, version=asked.version, id=asked.id, by=call.who))


async def send(api: Api, call: Call) -> Answer:
    """Send a signal to a job."""
    asked = call.form(Signal)
    job, _row = await find(api, call)
    delivered = await job.send_aio(call.text("name"), asked.value, id=asked.id, by=call.who)
    return 202, Sent(job.id, delivered.name)


async def find(api: Api, call: Call) -> tuple[Job[Any], JobRow]:
    """Return a job of the key's tenant; that of another tenant is not there.

    What is said to it is judged once more, in the bundle that is written.
    """
    job_id = call.text("job_id")
    row = await asyncio.to_thread(api.runtime.store.job, job_id)
    if row is None or not call.sees(row.tenant_id):
        raise NotFound(f"there is no job {job_id}", job_id=job_id)
    return api.app.job(job_id).only_of(call.only_tenant), row


async def _now(api: Api, job: Job[Any]) -> tuple[int, JobShown]:
    api.news.ring()
    return 200, job_shown(await job.row_aio())


def _submitted(job: Job[Any]) -> Answer:
    return 202 if job.created else 200, Submitted(job.id, job.created)
