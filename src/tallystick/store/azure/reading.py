"""What people and programs read of jobs, as requests to the service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tallystick.core.lifecycles import JOB, StepState
from tallystick.core.remote.listing import PROTOCOL, StepRow
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.remote.rows import OutboxRow, ProtocolJob
from tallystick.store.api import JobRow, StoredEvent
from tallystick.store.azure import keys
from tallystick.store.azure.entities import read_as, unpacked
from tallystick.store.azure.heads import ABANDONED, KeptStep, read_fact
from tallystick.store.azure.requests import Asking, Condition, Drop, Find, Row, Values, find, get, write
from tallystick.store.azure.tail import finish, load, truth

MONTHS_BACK: Final = 13
"""How many months back jobs are listed."""

LEFT_MS: Final = 10_000
"""After how long a change that is not finished was left by a process that died."""

OPEN: Final = tuple(("state", "ne", str(state)) for state in (*sorted(JOB.final), ABANDONED))
"""Which heads are of jobs that go on."""

_WINDOW_MS: Final = 60_000
_WIDER: Final = 4
_WINDOW_ROWS_MAX: Final = 1_000
_DAY_MS: Final = 86_400_000


def job_row(job: ProtocolJob, about: NewProtocolJob, created_at: int, updated_at: int) -> JobRow:
    """Return a job as people look at it."""
    return JobRow(
        job.job_id, job.state, job.protocol_id, "", "default", 5, job.tenant_id, 0, None, None, None,
        job.semaphore, job.start_ledger, created_at, updated_at, job.completed_at, None, job.payload,
        job.options, job.result, job.error, job.error_code, job.error_message, about.idempotency_key,
        about.idempotency_hash, None, about.retry_of,
    )  # fmt: skip


def read_copy(values: Values) -> JobRow:
    """Return a job from a row that has all of it: its head, or its copy."""
    job, about, found = read_as(ProtocolJob, values), read_as(NewProtocolJob, values), unpacked(values)
    return job_row(job, about, found["created_at"], found["updated_at"])


def step_told(kept: KeptStep) -> dict[str, Any]:
    """Return what is known of a step, by the names that every store has for it."""
    step = kept.step
    about = {"dimension": 0, "name": step.step_id, "occurrence": 1, "kind": PROTOCOL}
    return step._asdict() | about | {"created_at": kept.created_at, "updated_at": kept.updated_at}


def step_row(kept: KeptStep) -> StepRow:
    """Return a step as people look at it."""
    told = step_told(kept)
    return StepRow._make(told[name] for name in StepRow._fields)


def one_job(job_id: str) -> Asking[JobRow | None]:
    """Read one job."""
    row = yield from get(keys.STEPS, keys.encoded(job_id), keys.HEAD)
    return None if row is None or row.values["state"] == ABANDONED else read_copy(row.values)


def history(job_id: str, after: int = 0, limit: int | None = None) -> Asking[list[StoredEvent]]:
    """Read the facts of a job behind a place, in order."""
    rows = yield from find(Find(keys.EVENTS, keys.encoded(job_id), keys.event_row(after + 1), limit=limit))
    return [read_fact(row.values) for row in rows]


def newest_first(
    between: Callable[[str, str | None], Find],
    after: str | None,
    times: tuple[int, int],
    is_enough: Callable[[list[Row]], bool],
) -> Asking[list[Row]]:
    """Read rows whose keys begin with a time, the newest first, until there are enough.

    The service knows one order, so it is read in windows of time: each further one is wider, and one that
    holds too much is made smaller. `times` are those of the newest and of the oldest row.
    """
    found: list[Row] = []
    (at, first), below, span = times, after, _WINDOW_MS
    while not is_enough(found) and at > first:
        low = _first_born(max(at - span, first))
        asked = between(low, below)
        rows = yield from find(asked._replace(limit=_WINDOW_ROWS_MAX + 1))
        if len(rows) > _WINDOW_ROWS_MAX and span > 1:
            span = max(span // _WIDER, 1)
            continue
        found += reversed(rows)
        at, below, span = at - span, low, span * _WIDER
    return found


def page_of_jobs(
    tenant_id: str, states: Sequence[str], handler: str | None, after: str | None, limit: int, now: int
) -> Asking[list[JobRow]]:
    """Read a page of the jobs of a tenant, newest first, month by month."""
    found: list[JobRow] = []
    until = now + _DAY_MS if after is None else born_at(after) + 1
    for month in keys.months_back(keys.month_of(until), MONTHS_BACK):
        left = limit - len(found)
        if left <= 0:
            break
        rows = yield from newest_first(
            partial(Find, keys.JOBS, keys.key(tenant_id, month)),
            after and keys.encoded(after),
            (min(until, keys.month_end(month) + _DAY_MS), keys.month_start(month) - _DAY_MS),
            lambda rows, left=left: len(_wanted(rows, states, handler)) >= left,  # type: ignore[misc]  # bound here
        )
        found += _wanted(rows, states, handler)
    return found[:limit]


def _wanted(rows: Sequence[Row], states: Sequence[str], handler: str | None) -> list[JobRow]:
    jobs = [read_copy(row.values) for row in rows]
    return [row for row in jobs if (not states or row.state in states) and handler in (None, row.handler)]


def heads(after: str | None, limit: int, now: int, where: tuple[Condition, ...] = ()) -> Asking[list[Row]]:
    """Read a page of the heads of all jobs, newest first."""

    def between(low: str, below: str | None) -> Find:
        return Find(keys.STEPS, low, keys.HEAD, f"{keys.HEAD}!", None, where, below or keys.JOIN)

    until = now + _DAY_MS if after is None else born_at(after) + 1
    rows = yield from newest_first(
        between, after and keys.encoded(after), (until, 0), lambda rows: len(rows) >= limit
    )
    return rows[:limit]


def born_at(job_id: str) -> int:
    """Return the time that an identifier begins with."""
    text = job_id.replace("-", "")
    try:
        return int(text[:12], 16)
    except ValueError:
        return 0


def _first_born(instant: int) -> str:
    """Return what no identifier that was drawn at an instant or later is smaller than."""
    text = f"{max(instant, 0):012x}"
    return f"{text[:8]}-{text[8:]}"


def directive(outbox_id: str) -> Asking[OutboxRow | None]:
    """Read one directive, by way of its job."""
    job_id, _, rest = outbox_id.partition(":")
    step_id, _, attempt_no = rest.rpartition(":")
    seen = yield from truth(job_id)
    if seen is None or not attempt_no.isdecimal():
        return None
    if all(kept.step.step_id != step_id for kept in seen.steps):
        return None
    place = keys.outbox_row(job_id, seen.index_of(step_id), int(attempt_no))
    row = yield from get(keys.OUTBOX, seen.head.partition, place)
    return None if row is None else read_as(OutboxRow, row.values)


def ready(row: Row, now: int) -> Asking[OutboxRow | None]:
    """Follow a row of the index to the directive that is ready; a row that is over is deleted.

    The process that moved the job on deletes it last. If that has not come to it for a while, it has died,
    and may have left more undone, such as when to look again: all of it is done here.
    """
    job_id = str(row.values["job_id"])
    seen = yield from truth(job_id)
    pending = None if seen is None else seen.picture.pending
    if pending is not None and keys.ready_place(pending) == (row.pk, row.rk):
        return pending
    if seen is not None and seen.head.updated_at + LEFT_MS <= now:
        whole = yield from load(job_id)
        if whole is not None:
            yield from finish(whole)
        yield from write(Drop(keys.READY, row.pk, row.rk))
    return None


def given(row: Row, worker: str, now: int) -> Asking[OutboxRow | None]:
    """Follow a row that is for a remote worker to the directive that it has not acknowledged, if any."""
    seen = yield from truth(str(row.values["job_id"]))
    step = None if seen is None else seen.picture.active
    if seen is None or step is None or step.state != StepState.AWAITING_ACK or step.is_due(now):
        return None
    place = keys.outbox_row(step.job_id, step.step_index, step.attempt_no)
    kept = yield from get(keys.OUTBOX, seen.head.partition, place)
    found = None if kept is None else read_as(OutboxRow, kept.values)
    return found if found is not None and found.taken_by == worker else None
