"""Routes for operators: many jobs at once, effects in doubt, queues, schedules, and the server itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from tallystick.app.asking.many import Which, matching, reachable, tell_many
from tallystick.app.scheduling.plans import ScheduleView
from tallystick.app.scheduling.queues import QueueView
from tallystick.core.limits import check_storable
from tallystick.core.schedules.timetable import instant_ms
from tallystick.core.watching.searching import EffectSearch, JobSearch
from tallystick.errors import BadInput
from tallystick.http.api import Api
from tallystick.http.calls import Call
from tallystick.http.forms import (
    Backfilled,
    Backfilling,
    Bulk,
    EffectsQuery,
    HealthShown,
    Nothing,
    QueueLimits,
    QueueShown,
    QueuesPage,
    Reached,
    ResolveForm,
    ScheduleShown,
    SchedulesPage,
    Submitted,
)
from tallystick.http.jobs import find
from tallystick.http.shown import EffectsPage, effect_shown, job_shown
from tallystick.store.api import Queues, Schedules, searched

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

V = TypeVar("V")
Says: TypeAlias = Callable[..., Awaitable[V]]
Answer = tuple[int, object]
Handler = Callable[[Api, Call], Awaitable[Answer]]


async def bulk(api: Api, call: Call) -> Answer:
    """Say one word to every job that matches, or count those that it would reach."""
    asked = call.form(Bulk)
    states = tuple(state.value for state in asked.state)
    search = JobSearch(
        call.tenant(asked.tenant),
        states,
        workflow=_wanted(asked.workflow),
        queue=asked.queue,
        tag=_wanted(asked.tag),
        key=_wanted(asked.key),
        parent=_wanted(asked.parent),
        is_held=asked.held,
        since=None if asked.since is None else instant_ms(asked.since),
        until=None if asked.until is None else instant_ms(asked.until),
        error=_wanted(asked.error),
    )
    has_filter = search != JobSearch(search.tenant_id)
    if asked.everything and has_filter:
        raise BadInput('"everything" is all jobs of the tenant, and a filter is not: leave one of them out')
    if asked.count:
        wanted = reachable(asked.verb, search)
        word: Which = {"search": wanted, "states": wanted.states}
        return 200, Reached(await asyncio.to_thread(lambda: len(list(matching(api.runtime, word)))))
    if not asked.everything and not has_filter:
        raise BadInput(
            'this would reach all jobs of the tenant: add a filter, or "everything": true to mean all of them'
        )
    reached = await asyncio.to_thread(tell_many, api.app, asked.verb, search, call.who)
    api.news.ring()
    return 200, Reached(int(reached), reached.passed_by)


async def effects(api: Api, call: Call) -> Answer:
    """List effects of one tenant: the open ones by their keys, or those that ended, the last one first."""
    asked = call.query(EffectsQuery)
    about = (_wanted(asked.effect), _wanted(asked.key), _wanted(asked.job), asked.stands)
    search = EffectSearch(call.tenant(asked.tenant), asked.show == "ended", *about)
    look = searched(api.runtime.store).effects_found
    found = await asyncio.to_thread(look, search, after=_wanted(asked.after), limit=asked.limit)
    return 200, EffectsPage([effect_shown(row) for row in found.rows], found.reached)


async def resolve(api: Api, call: Call) -> Answer:
    """Say what came of an effect in doubt."""
    asked = call.form(ResolveForm)
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


async def schedules(api: Api, _call: Call) -> Answer:
    """List the schedules."""
    views = await api.app.schedules.all_aio() if isinstance(api.runtime.store, Schedules) else []
    return 200, SchedulesPage([_schedule(view) for view in views])


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
    return 200, HealthShown("ok")


async def ready(api: Api, _call: Call) -> Answer:
    """Say that the store answers too; else its error is the answer."""
    await asyncio.to_thread(api.runtime.store.job, "")
    return 200, HealthShown("ok")


def _wanted(text: str | None) -> str | None:
    return None if text is None else check_storable("filter", text)


def _queue(view: QueueView) -> QueueShown:
    limits = msgspec.structs.asdict(view.limits)
    return QueueShown(view.name, limits, view.declared, view.paused_by, _text(view.paused_at), view.running)


def _schedule(view: ScheduleView) -> ScheduleShown:
    about = (view.id, view.workflow, view.when, view.declared, view.paused_by, view.hold_reason)
    return ScheduleShown(*about, _text(view.next_at), _text(view.last_at), view.last_job, view.tenant)


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _saying(kind: str, verb: str, does: Callable[[Tally], Says[V]], shown: Callable[[V], object]) -> Handler:
    """Return the handler of a word that needs no form, said to one queue or schedule."""

    async def say(api: Api, call: Call) -> Answer:
        call.form(Nothing)
        return 200, shown(await does(api.app)(call.text(kind), by=call.who))

    say.__name__ = f"{verb}_{kind}"
    return say


pause_queue = _saying("queue", "pause", lambda app: app.queues.pause_aio, _queue)
resume_queue = _saying("queue", "resume", lambda app: app.queues.resume_aio, _queue)
reset_queue = _saying("queue", "reset", lambda app: app.queues.reset_aio, _queue)
pause_schedule = _saying("schedule", "pause", lambda app: app.schedules.pause_aio, _schedule)
resume_schedule = _saying("schedule", "resume", lambda app: app.schedules.resume_aio, _schedule)
