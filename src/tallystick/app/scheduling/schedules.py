"""Schedules: workflows that become jobs by the clock; declared by programs, looked after by people."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tallystick.app.api.control import act_on, noted
from tallystick.app.api.job import Job
from tallystick.app.api.retrying import Duration
from tallystick.app.api.submittable import Submittable
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.app.scheduling.plans import (
    MissedTicks,
    Overlapping,
    ScheduleView,
    When,
    check_comes,
    checked_jitter,
    plan_of,
    view_of,
)
from tallystick.app.scheduling.queues import DeclaringQueues
from tallystick.app.values.codec import Codec
from tallystick.core.limits import PAGE_ROWS_MAX, check_name
from tallystick.core.schedules.rows import MISSED_MAX, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import instant_ms, read, timetable_of
from tallystick.core.schedules.verbs import paused, resumed, ticks_between
from tallystick.core.watching.acts import PERSON, About, NoteAct
from tallystick.errors import BadInput, DuplicateHandler, NoSuchSchedule, ScheduleChanged
from tallystick.store.api import DropSchedule, Primitive, SaveSchedule, Schedules
from tallystick.worker.clockwork import Clockwork, Declared

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.api.workflows import AsyncWorkflow, Workflow

W = TypeVar("W", bound=Submittable[..., Any])

_TRIES_MAX: Final = 20


class Scheduled:
    """The schedules of a store: look after them here, or with `tally schedules`."""

    def __init__(
        self, runtime: Callable[[], Runtime], workflow_named: Callable[[str], Submittable[..., Any]]
    ) -> None:
        """Open nothing yet; `workflow_named` finds a declared workflow."""
        self._runtime = runtime
        self._workflow_named = workflow_named

    def add(
        self,
        schedule_id: str,
        workflow: Submittable[..., Any] | str,
        when: When,
        *,
        tz: str = "UTC",
        missed: MissedTicks = "last",
        overlap: Overlapping = "allow",
        jitter: Duration = 0,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        by: str = PERSON,
    ) -> ScheduleView:
        """Add a schedule of a workflow, or of its name; or change the one with this id. It is durable then.

        What `workflow.opts(...)` says holds for the job of each tick: queue, priority, delay, deadline, tags,
        limit key and tenant. A tick that is due under the timetable before becomes a job first. A schedule
        that a program declares is as declared again when a worker of that program starts.
        """
        if isinstance(workflow, str):
            workflow = self._workflow_named(workflow)
        if not isinstance(workflow, Submittable):
            raise BadInput(f"{workflow!r} is not a workflow: give one, or the name of one that is declared")
        plan = plan_of(workflow, when, tz, missed, overlap, jitter, args, kwargs or {})
        seen = self._store().schedule(check_name("schedule", schedule_id))
        if seen is None or seen.timetable != plan.timetable:
            check_comes(plan, self._runtime().store.now())
        act = act_on(About.SCHEDULE, schedule_id, "add", by, str(when))
        self._clockwork().plan(schedule_id, plan, declared=False, act=act)
        return self.get(schedule_id)

    add_aio = twin_of(add)

    def get(self, schedule_id: str) -> ScheduleView:
        """Return one schedule."""
        return view_of(self._seen(schedule_id))

    get_aio = twin_of(get)

    def all(self) -> list[ScheduleView]:
        """Return all schedules by their names."""
        store, found, after = self._store(), list[Schedule](), ""
        while page := store.schedules(after=after, limit=PAGE_ROWS_MAX):
            found += page
            after = page[-1].schedule_id
        return [view_of(row) for row in found]

    all_aio = twin_of(all)  # noqa: A003 (the method above)

    def pause(self, schedule_id: str, *, by: str = PERSON) -> ScheduleView:
        """Let no tick become a job until it is resumed; a new declaration does not resume it."""
        return self._moved(
            schedule_id, lambda seen, _now: paused(seen, by), act_on(About.SCHEDULE, schedule_id, "pause", by)
        )

    pause_aio = twin_of(pause)

    def resume(self, schedule_id: str, *, by: str = PERSON) -> ScheduleView:
        """Go on with the next tick; those of the pause are not made up for (see `backfill`)."""
        return self._moved(schedule_id, resumed, act_on(About.SCHEDULE, schedule_id, "resume", by))

    resume_aio = twin_of(resume)

    def trigger(self, schedule_id: str, *, by: str = PERSON) -> Job[Any]:
        """Make a job now, beside the timetable."""
        runtime, row = self._runtime(), self._seen(schedule_id)
        clockwork = self._clockwork()
        key = f"schedule:{schedule_id}:trigger:{runtime.ids.new()}"
        job = clockwork.job_of(row, self._runtime().store.now(), key)
        act = act_on(About.SCHEDULE, schedule_id, "trigger", by, f"job {job.job.job_id}")
        runtime.committer.call(noted((job,), act, runtime.store))
        return self._job(job.job.job_id, created=True)

    trigger_aio = twin_of(trigger)

    def backfill(
        self, schedule_id: str, since: datetime, until: datetime, *, by: str = PERSON
    ) -> list[Job[Any]]:
        """Make a job of each tick from `since` on and before `until` that has none."""
        if instant_ms(since) >= instant_ms(until):
            raise BadInput(
                f"since {since.isoformat()} is not before until {until.isoformat()}: no tick is between"
            )
        row = self._seen(schedule_id)
        ticks = list[int]()
        for tick in ticks_between(read(row.timetable), instant_ms(since), instant_ms(until)):
            ticks.append(tick)
            if len(ticks) > MISSED_MAX:
                raise BadInput(f"these are more than {MISSED_MAX} ticks: backfill them in parts")
        told = f"{since.isoformat()} until {until.isoformat()}, {len(ticks)} ticks"
        made = self._clockwork().backfill(
            row, ticks, act_on(About.SCHEDULE, schedule_id, "backfill", by, told)
        )
        return [self._job(job_id, created=created) for job_id, created in made]

    backfill_aio = twin_of(backfill)

    def remove(self, schedule_id: str, *, by: str = PERSON) -> None:
        """Remove a schedule; its jobs stay. One that a program still declares comes back with its worker."""
        for _ in range(_TRIES_MAX):
            seen = self._seen(schedule_id)
            if self._wrote(
                DropSchedule(schedule_id, seen.rev), act_on(About.SCHEDULE, schedule_id, "remove", by)
            ):
                return
        raise ScheduleChanged(schedule_id=schedule_id)

    remove_aio = twin_of(remove)

    def _store(self) -> Schedules:
        refuse_inside("look after schedules")
        store = self._runtime().store
        if not isinstance(store, Schedules):
            raise BadInput(f"{store.url} keeps no schedules; SQLite and PostgreSQL do")
        return store

    def _clockwork(self) -> Clockwork:
        runtime = self._runtime()
        return Clockwork(runtime.store, runtime.committer, runtime.clock, runtime.ids)

    def _seen(self, schedule_id: str) -> Schedule:
        found = self._store().schedule(schedule_id)
        if found is None:
            raise NoSuchSchedule(f"there is no schedule {schedule_id}", schedule_id=schedule_id)
        return found

    def _moved(
        self, schedule_id: str, change: Callable[[Schedule, int], Schedule], act: tuple[NoteAct, ...]
    ) -> ScheduleView:
        def known(seen: Schedule | None, now: int) -> Schedule:
            return change(self._seen(schedule_id) if seen is None else seen, now)

        return self._changed(schedule_id, known, act)

    def _changed(
        self,
        schedule_id: str,
        change: Callable[[Schedule | None, int], Schedule],
        act: tuple[NoteAct, ...],
    ) -> ScheduleView:
        """Put what a change makes of a schedule in its place; again if others were faster."""
        store = self._store()
        for _ in range(_TRIES_MAX):
            seen = store.schedule(schedule_id)
            row = change(seen, self._runtime().store.now())
            if self._wrote(SaveSchedule(row, None if seen is None else seen.rev), act):
                return self.get(schedule_id)
        raise ScheduleChanged(schedule_id=schedule_id)

    def _wrote(self, request: Primitive, act: tuple[NoteAct, ...]) -> bool:
        runtime = self._runtime()
        (outcome,) = runtime.committer.call_all([noted((request,), act, runtime.store)])
        if isinstance(outcome, BaseException) and not isinstance(outcome, ScheduleChanged):
            raise outcome
        return outcome is None

    def _job(self, job_id: str, *, created: bool) -> Job[Any]:
        return Job(self._runtime, job_id, lambda: Codec(Any), created=created)


class DeclaringSchedules(DeclaringQueues):
    """What a Tally knows of schedules, and of the queues that their jobs wait in."""

    _schedules: dict[str, Callable[[], SchedulePlan]]
    _workflows: dict[tuple[str, str], Workflow[..., Any] | AsyncWorkflow[..., Any]]

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    @property
    def schedules(self) -> Scheduled:
        """Return the schedules of the store, those that others added too."""
        return Scheduled(self.runtime, self._workflow_named)

    def schedule(
        self,
        when: When,
        *,
        id: str | None = None,  # noqa: A002 (what users call it)
        tz: str = "UTC",
        missed: MissedTicks = "last",
        overlap: Overlapping = "allow",
        jitter: Duration = 0,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Callable[[W], W]:
        """Declare that a workflow becomes a job by the clock; in force when a worker of it starts.

        `when` is a cron expression by the clocks of `tz`, "every 15m", an interval, or one instant. A tick
        that is more than a minute late is `missed`: left out, only the last one made up for, or all of them.
        """
        timetable_of(when, tz)
        checked_jitter(missed, overlap, jitter)

        def decorate(workflow: W) -> W:
            if not isinstance(workflow, Submittable):
                raise BadInput("@app.schedule stands above @app.workflow")
            name = check_name("schedule", id or workflow.name)
            if name in self._schedules:
                raise DuplicateHandler(
                    f"there is a schedule {name!r} already; give one another id=", name=name
                )
            about = (workflow, when, tz, missed, overlap, jitter, tuple(args), dict(kwargs or {}))
            self._schedules[name] = lambda: plan_of(*about)
            return workflow

        return decorate

    def _workflow_named(self, name: str) -> Submittable[..., Any]:
        found = [workflow for (label, _version), workflow in self._workflows.items() if label == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise BadInput(f"{name} is declared in {len(found)} versions: give the workflow itself")
        known = ", ".join(sorted({label for label, _version in self._workflows})) or "none"
        raise BadInput(f"there is no workflow {name!r} here; there are: {known}")

    @property
    def declared_schedules(self) -> frozenset[str]:
        """Return the names of the schedules that are declared here."""
        return frozenset(self._schedules)

    def declare_schedules(self) -> None:
        """Put the declared schedules in force; a worker does it when it starts."""
        if self._schedules:
            runtime = self.runtime()
            clockwork = Clockwork(runtime.store, runtime.committer, runtime.clock, runtime.ids)
            clockwork.declare([Declared(name, plan()) for name, plan in self._schedules.items()])
