"""Routes for operators: many jobs at once, effects in doubt, queues, schedules, and the server itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from tallystick.app.asking.many import Which, matching, reachable
from tallystick.app.scheduling.queues import QueueView
from tallystick.app.scheduling.schedules import ScheduleView
from tallystick.core.limits import check_storable
from tallystick.core.watching.searching import JobSearch
from tallystick.http.api import Api
from tallystick.http.calls import Call
from tallystick.http.forms import (
    Backfilled,
    Backfilling,
    Bulk,
    Health,
    Nothing,
    QueueLimits,
    QueueShown,
    QueuesPage,
    Reached,
    Resolving,
    ScheduleShown,
    SchedulesPage,
    Submitted,
)
from tallystick.http.jobs import find
from tallystick.http.shown import job_shown
from tallystick.store.api import Queues, Schedules

Answer = tuple[int, object]


async def bulk(api: Api, call: Call) -> Answer:
    """Say one word to every job that matches, or count those that it would reach."""
    asked = call.form(Bulk)
    states = [state.value for state in asked.state]
    search = JobSearch(
        call.tenant(asked.tenant),
        states,
        workflow=_wanted(asked.workflow),
        queue=asked.queue,
        tag=_wanted(asked.tag),
        key=_wanted(asked.key),
        parent=_wanted(asked.parent),
        is_held=asked.held,
        error=_wanted(asked.error),
    )
    if asked.count:
        wanted = reachable(asked.verb, search)
        word: Which = {"search": wanted, "states": wanted.states}
        return 200, Reached(await asyncio.to_thread(lambda: len(list(matching(api.runtime, word)))))
    app, who = api.app, call.who
    verbs: dict[str, Callable[[], int]] = {
        "cancel": lambda: app.cancel_many(search=search, by=who),
        "pause": lambda: app.pause_many(search=search, by=who),
        "resume": lambda: app.resume_many(search=search, by=who),
        "retry": lambda: app.retry_many(search=search, by=who),
    }
    reached = await asyncio.to_thread(verbs[asked.verb])
    api.news.ring()
    return 200, Reached(reached)


async def resolve(api: Api, call: Call) -> Answer:
    """Say what came of an effect in doubt."""
    asked = call.form(Resolving)
    job, _row = await find(api, call)
    said: dict[str, Any] = {"happened": asked.value} if asked.says == "happened" else {asked.says: True}
    await job.resolve_aio(effect=asked.effect, by=call.who, **said)
    api.news.ring()
    return 200, job_shown(await job.row_aio())


async def queues(api: Api, _call: Call) -> Answer:
    """List the queues that have limits."""
    views = await api.app.queues.all_aio() if isinstance(api.runtime.store, Queues) else []
    return 200, QueuesPage([_queue(view) for view in views])


async def set_queue(api: Api, call: Call) -> Answer:
    """Set limits of a queue."""
    given = msgspec.structs.asdict(call.form(QueueLimits))
    limits = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return 200, _queue(await api.app.queues.set_aio(call.text("queue"), by=call.who, **limits))


async def pause_queue(api: Api, call: Call) -> Answer:
    """Let no job of a queue be claimed."""
    call.form(Nothing)
    return 200, _queue(await api.app.queues.pause_aio(call.text("queue"), by=call.who))


async def resume_queue(api: Api, call: Call) -> Answer:
    """Let jobs of a queue be claimed again."""
    call.form(Nothing)
    return 200, _queue(await api.app.queues.resume_aio(call.text("queue"), by=call.who))


async def reset_queue(api: Api, call: Call) -> Answer:
    """Let what programs declare count again."""
    call.form(Nothing)
    return 200, _queue(await api.app.queues.reset_aio(call.text("queue"), by=call.who))


async def schedules(api: Api, _call: Call) -> Answer:
    """List the schedules."""
    views = await api.app.schedules.all_aio() if isinstance(api.runtime.store, Schedules) else []
    return 200, SchedulesPage([_schedule(view) for view in views])


async def pause_schedule(api: Api, call: Call) -> Answer:
    """Let no tick of a schedule become a job."""
    call.form(Nothing)
    return 200, _schedule(await api.app.schedules.pause_aio(call.text("schedule"), by=call.who))


async def resume_schedule(api: Api, call: Call) -> Answer:
    """Let a schedule go on with its next tick."""
    call.form(Nothing)
    return 200, _schedule(await api.app.schedules.resume_aio(call.text("schedule"), by=call.who))


async def trigger(api: Api, call: Call) -> Answer:
    """Make a job of a schedule now."""
    call.form(Nothing)
    job = await api.app.schedules.trigger_aio(call.text("schedule"), by=call.who)
    return 202, Submitted(job.id, job.created)


async def backfill(api: Api, call: Call) -> Answer:
    """Make a job of each tick of a time that has none."""
    asked = call.form(Backfilling)
    about = (call.text("schedule"), asked.since, asked.until)
    made = await api.app.schedules.backfill_aio(*about, by=call.who)
    return 200, Backfilled([Submitted(job.id, job.created) for job in made])


async def alive(_api: Api, _call: Call) -> Answer:
    """Say that the process answers."""
    return 200, Health("ok")


async def ready(api: Api, _call: Call) -> Answer:
    """Say that the store answers too; else its error is the answer."""
    await asyncio.to_thread(api.runtime.store.job, "")
    return 200, Health("ok")


def _wanted(text: str | None) -> str | None:
    return None if text is None else check_storable("filter", text)


def _queue(view: QueueView) -> QueueShown:
    limits = msgspec.structs.asdict(view.limits)
    return QueueShown(view.name, limits, view.declared, view.paused_by, _text(view.paused_at), view.running)


def _schedule(view: ScheduleView) -> ScheduleShown:
    about = (view.id, view.workflow, view.when, view.declared, view.paused_by, view.hold_reason)
    return ScheduleShown(*about, _text(view.next_at), _text(view.last_at), view.last_job)


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
