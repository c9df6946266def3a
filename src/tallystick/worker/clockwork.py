"""Makes jobs of the ticks of schedules; a job and its schedule are written in one bundle.

Any number of processes may do this at once: a tick that two of them see is made by the one that writes
first, and the other one's bundle is refused whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from tallystick.clock import Clock
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.schedules.rows import MISSED_MAX, Overlap, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import shown
from tallystick.core.schedules.verbs import (
    Fire,
    HoldSchedule,
    NotDue,
    PassBy,
    decide,
    decide_overlap,
    held,
    hurried,
    key_of,
    moved,
    never_ran,
    planned,
    ticked,
    waiting,
)
from tallystick.defaults import ATTEMPTS, PRIORITY, QUEUE
from tallystick.engine.committer import Committer
from tallystick.engine.submission import Submission, submit_job
from tallystick.errors import ScheduleChanged, StoreError
from tallystick.ids import Ids
from tallystick.store.api import (
    Bundle,
    CancelJob,
    Existing,
    JobRow,
    SaveSchedule,
    Schedules,
    Store,
    SubmitJob,
)

SCHEDULES_AT_ONCE: Final = 500
_TRIES_MAX: Final = 20

_log = logging.getLogger("tallystick.engine")


class JobOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the jobs of a schedule are submitted."""

    queue: str = QUEUE
    priority: int = PRIORITY
    attempts_max: int = ATTEMPTS
    deadline_ms: int | None = None
    tags: tuple[str, ...] = ()
    delay_ms: int = 0
    limit_key: str | None = None


class Declared(NamedTuple):
    """A schedule as a program declares it."""

    schedule_id: str
    plan: SchedulePlan


class Clockwork:
    """Makes jobs of the ticks of schedules."""

    def __init__(self, store: Store, committer: Committer, clock: Clock, ids: Ids) -> None:
        """Remember where; nothing is looked at yet."""
        if not isinstance(store, Schedules):
            raise StoreError(f"{store.url} keeps no schedules; SQLite and PostgreSQL do")
        self._store = store
        self._jobs = store
        self._committer = committer
        self._clock = clock
        self._ids = ids

    def turn(self) -> None:
        """Act on schedules that are due, a number of them at once."""
        now, due = self._store.due_schedules(SCHEDULES_AT_ONCE)
        self._act(due, now)

    def rest_ms(self) -> int | None:
        """Return how long there is nothing to do, as far as is known."""
        return self._store.next_tick()

    def declare(self, declared: Sequence[Declared]) -> None:
        """Keep what a program declares."""
        for schedule_id, plan in declared:
            stands = self.plan(schedule_id, plan, declared=True)
            if (passed := never_ran(stands)) is not None:
                about = {"action": "schedule.passed"}
                _log.warning(
                    "schedule %s never runs: its instant %s has passed", schedule_id, passed, extra=about
                )

    def plan(self, schedule_id: str, plan: SchedulePlan, *, declared: bool, act: Bundle = ()) -> Schedule:
        """Put a plan in force and return its schedule; whose act it is becomes durable with it.

        A tick that is due under an older plan becomes a job before that.
        """
        # Where jobs may not overlap, each turn acts on one of the ticks that are due.
        for _ in range(MISSED_MAX + _TRIES_MAX):
            if (stands := self._planned(schedule_id, plan, act, declared=declared)) is not None:
                return stands
        raise ScheduleChanged(schedule_id=schedule_id)

    def _planned(
        self, schedule_id: str, plan: SchedulePlan, act: Bundle, *, declared: bool
    ) -> Schedule | None:
        """Put a plan in force; return None if there is more to do before."""
        now, seen = self._store.now(), self._store.schedule(schedule_id)
        if seen is not None and seen.plan != plan:
            owing = hurried(seen, plan, now)
            if not isinstance(decide(owing, now), NotDue):
                self._act([owing], now)
                return None
        row = planned(seen, plan, now, schedule_id=schedule_id, declared=declared)
        if row is not None:
            request = SaveSchedule(row, None if seen is None else seen.rev)
            (outcome,) = self._committer.call_all([(*act, request)])
            if isinstance(outcome, BaseException) and not isinstance(outcome, ScheduleChanged):
                raise outcome
            return row if outcome is None else None
        return seen

    def _act(self, due: Sequence[Schedule], now: int) -> None:
        """Decide about each schedule, and write all that was decided; what others did first is as good."""
        written = self._write([bundle for schedule in due for bundle in self._bundles(schedule, now)])
        # A job that no worker runs ends when it is asked to, and then its successor need not wait.
        begun = (bundle[-1] for bundle in written if isinstance(bundle[0], CancelJob))
        waits = [saved.schedule for saved in begun if isinstance(saved, SaveSchedule)]
        over = [row._replace(due_at=now) for row in waits if self._running(row) is None]
        self._write([bundle for row in over for bundle in self._bundles(row, now)])

    def _write(self, bundles: Sequence[Bundle]) -> list[Bundle]:
        """Write bundles, and return those that were accepted."""
        made_before: list[Bundle] = []
        accepted: list[Bundle] = []
        for bundle, outcome in zip(bundles, self._committer.call_all(bundles), strict=True):
            if isinstance(outcome, Existing) and isinstance(saved := bundle[-1], SaveSchedule):
                # A person has backfilled this tick: nothing was written, and its job is that one.
                after = saved.schedule._replace(last_job_id=outcome.job_id)
                made_before.append((SaveSchedule(after, saved.seen),))
            elif isinstance(outcome, StoreError):
                raise outcome
            elif not isinstance(outcome, BaseException):
                accepted.append(bundle)
            elif not isinstance(outcome, ScheduleChanged):
                about = {"action": "schedule.refused"}
                _log.error("schedule %s: a tick was refused, %s", _name(bundle), outcome, extra=about)
        if made_before:
            self._write(made_before)
        return accepted

    def _bundles(self, schedule: Schedule, now: int) -> Iterator[Bundle]:
        match decide(schedule, now):
            case NotDue():
                return
            case PassBy(to):
                yield (SaveSchedule(moved(schedule, to), schedule.rev),)
            case HoldSchedule(reason):
                _log.error("schedule %s is held: %s", schedule.schedule_id, reason)
                yield (SaveSchedule(held(schedule, reason), schedule.rev),)
            case Fire(ticks):
                yield from self._ticks(schedule, ticks, now)

    def _ticks(self, schedule: Schedule, ticks: Sequence[int], now: int) -> Iterator[Bundle]:
        running = self._running(schedule)
        match decide_overlap(schedule, running=running is not None):
            case Overlap.SKIP:
                _log.info("schedule %s: %s is left out", schedule.schedule_id, shown(ticks[0]))
                yield (SaveSchedule(ticked(schedule, ticks[0], None), schedule.rev),)
            case Overlap.CANCEL_OLD:
                # The tick becomes a job when the one before has ended. That it was in time is kept.
                saved = SaveSchedule(waiting(schedule, now), schedule.rev)
                if running is None or running.state == JobState.CANCELLING:
                    yield (saved,)
                else:
                    yield (CancelJob(running.job_id, CANCEL_GRACE_MS), saved)
            case Overlap.ALLOW:
                # Where jobs may not overlap the next tick is decided when this one has its job.
                several = Overlap(schedule.overlap) is Overlap.ALLOW
                for tick in ticks if several else ticks[:1]:
                    job = self.job_of(schedule, tick, key_of(schedule.schedule_id, tick))
                    after = ticked(schedule, tick, job.job.job_id)
                    yield (job, SaveSchedule(after, schedule.rev))
                    schedule = after

    def _running(self, schedule: Schedule) -> JobRow | None:
        """Return the job of the tick before, if it has not ended and that matters."""
        if schedule.last_job_id is None or Overlap(schedule.overlap) is Overlap.ALLOW:
            return None
        job = self._jobs.job(schedule.last_job_id)
        return None if job is None or job.state in JOB.final else job

    def job_of(self, schedule: Schedule, tick: int, key: str) -> SubmitJob:
        """Return the submission of a tick."""
        options = msgspec.json.decode(schedule.options, type=JobOptions)
        payload = schedule.payload
        if schedule.instant_as is not None:
            arguments = msgspec.json.decode(payload)
            payload = msgspec.json.encode({**arguments, schedule.instant_as: shown(tick)}).decode()
        submission = Submission(
            handler=schedule.handler,
            version=schedule.version,
            payload=payload,
            tenant_id=schedule.tenant_id,
            queue=options.queue,
            priority=options.priority,
            attempts_max=options.attempts_max,
            delay_ms=options.delay_ms,
            deadline_ms=options.deadline_ms,
            limit_key=options.limit_key,
            idempotency_key=key,
            tags=(*options.tags, f"schedule:{schedule.schedule_id}"),
        )
        return submit_job(submission, self._ids.new(), self._clock.wall_ms())

    def backfill(self, schedule: Schedule, ticks: Sequence[int], act: Bundle = ()) -> list[tuple[str, bool]]:
        """Make jobs of ticks that have none; return each tick's job and whether it was made now.

        Whose act it is becomes durable with the first of them.
        """
        jobs = [self.job_of(schedule, tick, key_of(schedule.schedule_id, tick)) for tick in ticks]
        made = []
        bundles: list[Bundle] = [(job,) if n else (*act, job) for n, job in enumerate(jobs)]
        for job, outcome in zip(jobs, self._committer.call_all(bundles), strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            made.append((outcome.job_id, False) if isinstance(outcome, Existing) else (job.job.job_id, True))
        return made


def _name(bundle: Bundle) -> str:
    last = bundle[-1]
    return last.schedule.schedule_id if isinstance(last, SaveSchedule) else type(last).__name__
