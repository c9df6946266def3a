"""Holding and resuming: one flag under the job's row, and a fact where nobody else is the author."""

from __future__ import annotations

from typing import Any

import msgspec

from tallystick.core.chain import Chain
from tallystick.core.holds import Held, Resumed, decide_hold, decide_resume
from tallystick.core.lifecycles import JOB, JobState
from tallystick.errors import NotFound
from tallystick.store.api import Fact, Fence, HoldJob, ResumeJob
from tallystick.store.writing import Writing


def hold_job(batch: Writing, request: HoldJob) -> Held:
    """Set the flag, and write the fact unless a live attempt will."""
    state, attempt, dimension, hold, live = _holdable(batch, request.job_id)
    if request.since is not None and (attempt != request.since or live):
        return Held.MOVED
    verdict = decide_hold(
        final=JobState(state) in JOB.final,
        cancelling=state == JobState.CANCELLING,
        held=hold is not None,
        live=bool(live),
    )
    if verdict not in (Held.HELD, Held.ASKED):
        return verdict
    chain = None if live else batch.newest(request.job_id, dimension)
    payload: dict[str, object] = {"hold": request.hold.value, "why": request.why}
    row = (request.job_id, attempt, request.hold.value, request.why)
    _write(batch, "hold_job", row, chain, ("hold", attempt, payload))
    return verdict


def resume_job(batch: Writing, request: ResumeJob) -> Resumed:
    """Clear the flag, and write the fact unless a live attempt is the author now."""
    state, attempt, dimension, hold, live = _holdable(batch, request.job_id)
    verdict = decide_resume(final=JobState(state) in JOB.final, held=hold is not None)
    if verdict is not Resumed.FREE:
        return verdict
    chain = None if live else batch.newest(request.job_id, dimension)
    _write(batch, "resume_job", (request.job_id, attempt, hold), chain, ("resume", attempt, {"hold": hold}))
    return verdict


def _holdable(batch: Writing, job_id: str) -> tuple[Any, ...]:
    batch.lock(job_id)
    found = batch.rows("holdable", (job_id,))
    if not found:
        raise NotFound(f"there is no job {job_id}", job_id=job_id)
    return found[0]


def _write(
    batch: Writing,
    statement: str,
    row: tuple[object, ...],
    chain: Chain | None,
    about: tuple[str, int, dict[str, object]],
) -> None:
    """Write the flag, guarded by what was read, and a fact when there is a chain to write it to."""
    kind, attempt, payload = about
    fence = Fence(str(row[0]), attempt, kind)
    if chain is None:
        batch.many(statement, [(*row, None, None, batch.wall)], fence)
        return
    event = batch.placed(Fact(chain, kind, batch.wall, attempt, msgspec.json.encode(payload).decode()))
    batch.many(statement, [(*row, event.n, event.event_hash, batch.wall)], fence)
    batch.many("insert_event", [event], fence)
