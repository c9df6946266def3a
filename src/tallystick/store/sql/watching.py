"""What operators watch, on SQL stores: rows that workers write of themselves, and counts that are bounded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from tallystick.core.audit.book import Kept
from tallystick.core.audit.removals import LogEnd
from tallystick.core.effects.rows import EffectRow
from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.acts import About, Act, NoteAct, line_of
from tallystick.core.watching.rows import (
    DEPTH_MAX,
    FORGET_WORKER_MS,
    KEEP_COUNTS_MS,
    Backlog,
    EndedCount,
    LeaveWorker,
    QueueDepth,
    ReportWorker,
    RunningJob,
    WorkerRow,
)
from tallystick.core.watching.searching import (
    ERROR_WINDOWS,
    WINDOW_JOBS,
    CountedJobs,
    EffectSearch,
    FoundEffects,
    FoundJobs,
    JobSearch,
    SearchWalk,
)
from tallystick.store.api import JobRow, OfTenant
from tallystick.store.inspection import Inspection
from tallystick.store.sql.reads import NEWEST, listed
from tallystick.store.writing import OpenTransaction

_MINUTE_MS = 60_000
# Identifiers of jobs begin with the instant at which they were drawn; machines disagree by less than this.
_SKEW_MS: Final = 3_600_000
_UUID_MS_MAX: Final = 2**48 - 1
_SEQ_MAX: Final = 2**63 - 1


class _Walked(NamedTuple):
    """The statements of a walk: what is found, how much, and where a window ends."""

    found: str
    counted: str
    floor: str


_ALL_JOBS: Final = _Walked("jobs_found", "count_found", "job_floor")
_WALKED: Final = {
    SearchWalk.TAG: _Walked("jobs_found_tagged", "count_found_tagged", "tag_floor"),
    SearchWalk.HELD: _Walked("jobs_found_held", "count_found_held", "held_floor"),
    SearchWalk.DEAD: _Walked("jobs_found_dead", "count_found_dead", "dead_floor"),
    SearchWalk.ERROR: _Walked("jobs_found_failing", "count_found_failing", "failing_floor"),
}


class _Range(NamedTuple):
    """Identifiers from `first` on and before `before`; `counted`: as many as a window has."""

    first: str
    before: str
    counted: bool = False


def report_worker(batch: OpenTransaction, request: ReportWorker) -> None:
    """Note that a worker lives and what it has ended; forget workers and counts of long ago."""
    wall = batch.wall
    *about, ended = request
    batch.run("put_worker", (*about, wall, wall))
    for state, number in ended:
        batch.run("add_ended", (wall // _MINUTE_MS, request.owner, state, number))
    batch.run("trim_workers", (wall - FORGET_WORKER_MS,))
    if ended:
        batch.run("trim_ended", ((wall - KEEP_COUNTS_MS) // _MINUTE_MS,))


def leave_worker(batch: OpenTransaction, request: LeaveWorker) -> None:
    """Forget a worker that has stopped."""
    batch.run("drop_worker", request)


def note_act(batch: OpenTransaction, request: NoteAct) -> None:
    """Keep what a person does in this bundle."""
    end = [LogEnd._make(row) for row in batch.rows("acts_end", ())]
    batch.run("insert_act", line_of(request, end[0] if end else LogEnd(), batch.wall))


def check_owner(batch: OpenTransaction, request: OfTenant) -> None:
    """Refuse the bundle if the job is not of the tenant that it is for; its row stays until the commit."""
    found = batch.rows("owner", (request.job_id,))
    request.judge(str(found[0][0]) if found else None)


class SearchReads(ABC):
    """What people look for; nothing is decided by it."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    @abstractmethod
    def inspect(self) -> Inspection:
        """Return what a check reads."""

    def jobs_found(
        self, search: JobSearch, *, before: str | None, limit: int, window: int = WINDOW_JOBS
    ) -> FoundJobs:
        """Return jobs that have all of this in common, newest first."""
        within = self._range(search, before or NEWEST, window)
        if within is None:
            return FoundJobs([], None)
        name = _WALKED.get(search.walk, _ALL_JOBS).found
        found = [JobRow._make(row) for row in self.rows(name, _asked(search, within, limit))]
        return FoundJobs(found, within.first if within.counted else None)

    def count_found(
        self,
        search: JobSearch,
        *,
        before: str | None,
        limit: int,
        window: int = WINDOW_JOBS,
        reached: str | None = None,
    ) -> CountedJobs:
        """Return how many there are in the same window, counted up to a limit."""
        before = before or NEWEST
        if reached is not None and search.is_walk_alone:
            # The window is full, and all of it is meant.
            return CountedJobs(min(limit, window), reached)
        if reached is None:
            within = self._range(search, before, window)
        else:
            within = _Range(reached, _end(search, before), counted=True)
        if within is None:
            return CountedJobs(0, None)
        name = _WALKED.get(search.walk, _ALL_JOBS).counted
        ((number,),) = self.rows(name, _asked(search, within, limit))
        return CountedJobs(int(number), within.first if within.counted else None)

    def dead(
        self, *, tenant_id: str | None, handler: str | None, after: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs that have failed and were not retried, newest first."""
        page = (handler, after or NEWEST, limit)
        rows = self.rows("dead_of_all", page) if tenant_id is None else self.rows("dead", (tenant_id, *page))
        return [JobRow._make(row) for row in rows]

    def held_jobs(
        self, tenant_id: str, holds: Sequence[str], *, before: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs of a tenant that one of these holds, newest first."""
        pages = (self.rows("held_jobs", (tenant_id, hold, before or NEWEST, limit)) for hold in holds)
        found = [JobRow._make(row) for page in pages for row in page]
        return sorted(found, key=attrgetter("job_id"), reverse=True)[:limit]

    def late_jobs(self, tenant_id: str, *, limit: int, window: int = WINDOW_JOBS) -> FoundJobs:
        """Return jobs of a tenant whose grace or deadline is over, the longest over first."""
        now = self.now()
        rows = [JobRow._make(row) for row in self.rows("late_jobs", (tenant_id, now, window, limit))]
        floors = self.rows("late_floor", (now, window)) if len(rows) < limit else []
        return FoundJobs(rows, floors[0][0] if floors else None)

    def lost_jobs(self, tenant_id: str, *, limit: int) -> list[JobRow]:
        """Return jobs of a tenant that a worker had whose lease has run out, the longest over first."""
        epoch, now = self.inspect().lease_clock()
        rows = self.rows("lost_jobs", (tenant_id, epoch, now, limit))
        return list({row.job_id: row for row in map(JobRow._make, rows)}.values())

    def effects_found(
        self, search: EffectSearch, *, after: str | None, limit: int, window: int = WINDOW_JOBS
    ) -> FoundEffects:
        """Return effects that have all of this in common, and look at so many at most."""
        found: list[EffectRow] = []
        size = limit + 1 if search.is_plain else window
        page = self._effects(search, after, size)
        for row in page:
            if search.wants(row):
                if len(found) == limit:
                    return FoundEffects(found, after)
                found.append(row)
            after = search.place(row)
        return FoundEffects(found, after if len(page) == size else None)

    def _effects(self, search: EffectSearch, after: str | None, size: int) -> list[EffectRow]:
        """Return so many effects behind a place, in the order of a search."""
        first, exec_id = ("", "") if after is None else search.behind(after)
        if search.job_id is not None or (search.key is not None and not search.ended):
            # These are few.
            of_job, of_key = (search.job_id,), (search.tenant_id, search.key)
            rows = self.rows("effects_of", of_job) if search.job_id else self.rows("open_effects", of_key)
            few = sorted((EffectRow._make(row) for row in rows), key=lambda row: row.exec_id)
            return [row for row in few if row.exec_id > exec_id][:size]
        if search.ended:
            rows = self.rows("ended_effects", (search.tenant_id, int(first or _SEQ_MAX), exec_id, size))
        else:
            rows = self.rows("open_effects_page", (search.tenant_id, first, exec_id, size))
        return [EffectRow._make(row) for row in rows]

    def acts(
        self, about: Sequence[About], name: str | None = None, *, before: int | None = None, limit: int
    ) -> list[Act]:
        """Return what people did to jobs, queues or schedules, or to one of them, the newest first."""
        until = _SEQ_MAX if before is None else before
        if name is None:
            found = [row for kind in about for row in self.rows("all_acts", (kind.value, until, limit))]
        else:
            (kind,) = about
            found = self.rows("acts", (kind, name, until, limit))
        return sorted((Act._make(row) for row in found), reverse=True)[:limit]

    def _range(self, search: JobSearch, before: str, window: int) -> _Range | None:
        """Return which identifiers can be meant at all; None if there is none."""
        if search.key is not None and search.tenant_id is not None:
            kept = self.rows("kept", (search.tenant_id, "key", search.key))
            if not kept:
                return None
            (job_id,) = (Kept._make(row).job_id for row in kept)
            return _Range(job_id, f"{job_id} ") if job_id < before else None
        before = _end(search, before)
        floor = self._floor(search, before, window)
        if search.parent is not None:
            first = f"{search.parent}."
            return _Range(max(first, floor), before, counted=floor > first)
        return _Range(floor, before, counted=bool(floor))

    def _floor(self, search: JobSearch, before: str, window: int) -> str:
        """Return the last job that a page looks at; nothing if there are fewer than it may look at."""
        walk = search.walk
        walked = _WALKED.get(walk, _ALL_JOBS)
        if walked is _ALL_JOBS:
            return _first(self.rows(walked.floor, (before, window)))
        if walk is SearchWalk.TAG:
            return _first(self.rows(walked.floor, (search.tag, before, window)))
        if walk is not SearchWalk.ERROR or not search.has_unindexed:
            return _first(self.rows(walked.floor, (search.tenant_id, before, window)))
        last = _first(self.rows(walked.floor, (search.tenant_id, before, ERROR_WINDOWS * window)))
        others = _asked(search._replace(error=None), _Range(last, before), window)
        return _first(self.rows("failing_match", others)) or last


class WatchReads(SearchReads):
    """What is read for people and for graphs: every read is bounded, and none scans a table of jobs."""

    def workers(self, limit: int) -> list[WorkerRow]:
        """Return the workers that have reported within a day and did not leave, the one heard last first."""
        return [WorkerRow._make(row) for row in self.rows("workers", (limit,))]

    def ended(self, since_ms: int) -> list[EndedCount]:
        """Return how many jobs workers have ended since an instant, by minute and state."""
        return [EndedCount._make(row) for row in self.rows("ended", (since_ms // _MINUTE_MS,))]

    def ended_of_workers(self, since_ms: int) -> dict[str, int]:
        """Return how many jobs each worker has ended since an instant."""
        return dict(self.rows("ended_of_workers", (since_ms // _MINUTE_MS,)))

    def running(self, limit: int) -> list[RunningJob]:
        """Return the jobs that workers have, the one that runs longest first."""
        return [RunningJob._make(row) for row in self.rows("running_longest", (limit,))]

    def backlog(self, at_most: int = DEPTH_MAX) -> Backlog:
        """Return what waits for workers, for people, for relays and for the clock."""
        now = self.now()
        queues = [
            QueueDepth(queue, min(depth, at_most), oldest_at)
            for (queue,) in self.rows("waiting_queues")
            for depth, oldest_at in self.rows("queue_depth", (queue, now, at_most))
            if depth
        ]
        ((outbox, outbox_at),) = self.rows("outbox_depth", (now, at_most))
        ((tick_at,),) = self.rows("next_tick")
        counts = self.rows("held_counts", (listed([hold.value for hold in Hold]), at_most))
        held = {str(hold): int(number) for hold, number in counts if number}
        ((schedules_held,),) = self.rows("held_schedules", (at_most,))
        return Backlog(now, queues, held, outbox, outbox_at, tick_at, schedules_held)


def _drawn_at(ms: int) -> str:
    """Return what is behind every identifier that was drawn before an instant.

    >>> _drawn_at(1_700_000_000_000)
    '018bcfe5-6800'
    """
    text = f"{min(ms, _UUID_MS_MAX):012x}"
    return f"{text[:8]}-{text[8:]}"


def _end(search: JobSearch, before: str) -> str:
    """Return behind which identifiers no job of a search is, on a page before one."""
    if search.parent is not None:
        # The identifier of a child is its parent's, a dot, and its place.
        return min(before, f"{search.parent}/")
    return before if search.until is None else min(before, _drawn_at(search.until + _SKEW_MS))


def _first(rows: list[tuple[Any, ...]]) -> str:
    return str(rows[0][0]) if rows else ""


def _asked(search: JobSearch, within: _Range, limit: int) -> tuple[object, ...]:
    """Return a search as the statements take it."""
    about = (search.tenant_id, listed(search.states), search.workflow, search.queue, search.key)
    marks = (search.parent, int(search.is_held), int(search.is_dead))
    more = (*marks, search.since, search.until, search.error)
    tag = () if search.tag is None else (search.tag,)
    return (*about, *more, within.first, within.before, limit, *tag)
