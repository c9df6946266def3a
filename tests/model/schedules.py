"""The world of a schedule: two processes that look and write by its revision, a clock, and a person.

What becomes of a tick is decided by core (`decide`, `ticked`, `moved`, `held`, `resumed`). A process may die
between its look and its write. A tick and the schedule behind it are one bundle.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from tallystick.core.schedules import verbs
from tallystick.core.schedules.rows import MISSED_MAX, MISSED_MS, Missed, Overlap, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import Every, Once, write
from tests.model.search import Violation

EVERY_MS = 30_000
# More than a tick may be late: what was due before such a step is missed.
JUMP_MS = MISSED_MS + EVERY_MS + 1


class Shape(NamedTuple):
    """A small world: what becomes of missed and overlapping ticks, and how much may happen."""

    missed: Missed = Missed.ALL
    overlap: Overlap = Overlap.ALLOW
    jitter_ms: int = 0
    steps: int = 2
    jumps: int = 1
    deaths: int = 1
    pauses: int = 0
    rests: int = 8
    jump_ms: int = JUMP_MS
    # One instant instead of an interval.
    once: bool = False


class State(NamedTuple):
    """The row, what each process has seen, the jobs by their ticks, and whether the last one runs."""

    now: int
    row: Schedule
    seen: tuple[tuple[Schedule, int] | None, ...]
    jobs: tuple[int, ...]
    running: bool
    # Until when a person did not want ticks, and which were left out on purpose.
    unwanted: int
    left_out: tuple[int, ...]
    steps: int
    jumps: int
    deaths: int
    pauses: int
    # How often a process may look again that waits for the end of a job, when that has ended.
    rests: int


class ScheduleWorld:
    """All that can happen to a schedule."""

    def __init__(self, shape: Shape, rules: ModuleType = verbs) -> None:
        self._shape = shape
        self._rules = rules

    def initial(self) -> State:
        shape = self._shape
        table = write(Once(EVERY_MS) if shape.once else Every(EVERY_MS))
        plan = SchedulePlan(
            "t", "flow", "", "{}", None, "{}", table, shape.missed, shape.overlap, shape.jitter_ms
        )
        row = self._rules.planned(None, plan, 0, schedule_id="s", declared=True)
        about = (shape.steps, shape.jumps, shape.deaths, shape.pauses, shape.rests)
        return State(0, row, (None, None), (), False, 0, (), *about)

    def successors(self, state: State) -> list[tuple[str, State]]:
        found = []
        if state.steps:
            found.append(("tick", state._replace(now=state.now + EVERY_MS, steps=state.steps - 1)))
        if state.jumps:
            found.append(("jump", state._replace(now=state.now + self._shape.jump_ms, jumps=state.jumps - 1)))
        if state.running:
            found.append(("end", state._replace(running=False)))
        elif state.rests and state.row.waits_since is not None and (due := state.row.due_at or 0) > state.now:
            found.append(("rest", state._replace(now=due, rests=state.rests - 1)))
        found += self._by_person(state)
        for place, seen in enumerate(state.seen):
            if seen is None:
                if not isinstance(self._rules.decide(state.row, state.now), self._rules.NotDue):
                    found.append((f"look {place}", self._with(state, place, (state.row, state.now))))
                continue
            found.append((f"write {place}", self._written(self._with(state, place, None), *seen)))
            if state.deaths:
                dead = self._with(state, place, None)
                found.append((f"die {place}", dead._replace(deaths=state.deaths - 1)))
        return found

    def _by_person(self, state: State) -> list[tuple[str, State]]:
        row = state.row
        if row.paused_by is not None or row.hold_reason is not None:
            resumed = self._rules.resumed(row, state.now)
            return [("resume", state._replace(row=resumed, unwanted=state.now))]
        if not state.pauses:
            return []
        paused = self._rules.paused(row, "ada")
        return [("pause", state._replace(row=paused, pauses=state.pauses - 1))]

    def _with(self, state: State, place: int, seen: tuple[Schedule, int] | None) -> State:
        return state._replace(seen=(*state.seen[:place], seen, *state.seen[place + 1 :]))

    def _written(self, state: State, row: Schedule, now: int) -> State:
        """Write what a process has decided from what it saw; each bundle is guarded by the revision."""
        rules, verdict = self._rules, self._rules.decide(row, now)
        if isinstance(verdict, rules.PassBy):
            if row.waits_since is not None:
                raise Violation(f"the tick {row.next_at} was in time, and is passed by because it waited")
            return self._saved(state, row, rules.moved(row, verdict.to))
        if isinstance(verdict, rules.HoldSchedule):
            return self._saved(state, row, rules.held(row, verdict.reason))
        assert isinstance(verdict, rules.Fire), "it looked because something was due"
        overlap = rules.decide_overlap(row, running=state.running and row.last_job_id is not None)
        if overlap is Overlap.SKIP:
            after = self._saved(state, row, rules.ticked(row, verdict.ticks[0], None))
            return after if after is state else after._replace(left_out=(*state.left_out, verdict.ticks[0]))
        if overlap is Overlap.CANCEL_OLD:
            return self._saved(state, row, rules.waiting(row, now))
        several = Overlap(row.overlap) is Overlap.ALLOW
        for tick in verdict.ticks if several else verdict.ticks[:1]:
            behind = rules.ticked(row, tick, rules.key_of("s", tick))
            after = self._saved(state, row, behind)
            if after is not state and state.running:
                raise Violation("two jobs of a schedule run at once")
            if after is not state:
                state = after._replace(jobs=(*state.jobs, tick), running=not several)
            row = behind
        return state

    def _saved(self, state: State, seen: Schedule, after: Schedule) -> State:
        return state._replace(row=after) if state.row.rev == seen.rev else state

    # What is promised.

    def check(self, state: State) -> None:
        if len(set(state.jobs)) != len(state.jobs):
            raise Violation(f"a tick became two jobs: {state.jobs}")
        if list(state.jobs) != sorted(state.jobs):
            raise Violation(f"ticks became jobs in another order: {state.jobs}")
        if state.row.last_at != (state.jobs[-1] if state.jobs else None):
            raise Violation("the schedule does not know its last job")
        early = [tick for tick in state.jobs if tick > state.now or tick % EVERY_MS]
        if early:
            raise Violation(f"{early[0]} is no tick, or has not come yet")
        row = state.row
        if (row.paused_by is not None or row.hold_reason is not None) and row.due_at is not None:
            raise Violation("a schedule that is paused or held is due")
        if row.due_at is None and None is row.paused_by is row.hold_reason and row.next_at is not None:
            raise Violation("a schedule that goes on is never due")
        if row.hold_reason is not None and state.now - (row.next_at or 0) < MISSED_MAX * EVERY_MS:
            raise Violation("it is held, and few ticks were missed")
        if self._is_quiet(state):
            self._judge_quiet(state)
        if self._shape.missed is Missed.ALL and not self._shape.pauses:
            self._judge_all(state)

    def _judge_all(self, state: State) -> None:
        """Where all ticks are wanted, each before the next one has its job or was left out on purpose."""
        before = range(EVERY_MS, state.row.next_at or 0, EVERY_MS)
        done = {*state.jobs, *state.left_out}
        lost = [tick for tick in before if tick not in done and tick > state.unwanted]
        if lost and not self._shape.jitter_ms:
            raise Violation(f"the tick {lost[0]} was lost")

    def _judge_quiet(self, state: State) -> None:
        """Where nothing is due any more, the newest tick has its job, unless it was not wanted."""
        newest = EVERY_MS if self._shape.once else state.now // EVERY_MS * EVERY_MS
        wanted = self._shape.missed is not Missed.SKIP and state.unwanted < newest <= state.now
        if wanted and not self._shape.jitter_ms and newest not in (*state.jobs, *state.left_out):
            raise Violation(f"all is quiet, and the newest tick {newest} has no job")

    def _is_quiet(self, state: State) -> bool:
        row = state.row
        waits = row.paused_by is not None or row.hold_reason is not None
        return (
            not waits
            and row.waits_since is None
            and isinstance(self._rules.decide(row, state.now), self._rules.NotDue)
        )

    def final(self, state: State) -> bool:
        """Tell whether nothing is left to do: time is over, and all that was due is done."""
        over = not (state.steps or state.jumps or state.running) and state.seen == (None, None)
        return over and self._is_quiet(state)

    def ledgers(self, state: State) -> tuple[int, ...]:
        return (state.row.rev, 1 << 60 if state.row.next_at is None else state.row.next_at)

    def helpful(self, label: str) -> bool:
        return not label.startswith(("die", "pause"))
