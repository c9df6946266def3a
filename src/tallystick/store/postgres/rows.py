"""What goes to the server: lists of rows, each a JSON array in the order in which its statement reads it."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.chain import Link
from tallystick.core.marks import OPENED, STARTED
from tallystick.store.api import Event, SubmitJob


def columns(event: Event) -> tuple[object, ...]:
    """Return the columns of an event after its job."""
    _job_id, n, kind, at, attempt, payload, prev_hash, event_hash = event
    return n, kind, at, attempt, payload, prev_hash.hex(), event_hash.hex()


def step_columns(link: Link) -> tuple[object, ...]:
    """Return the columns of a step's place in the chain."""
    return link.n, link.prev_hash.hex(), link.event_hash.hex()


def link_of(event: Event) -> Link:
    """Return the place that an event has taken."""
    return Link(event.n, event.prev_hash, event.event_hash)


def job_row(request: SubmitJob, events: Sequence[Event]) -> tuple[object, ...]:
    """Return a new job as `insert_jobs` reads it."""
    job, _facts, reservation, lease = request
    # How long from now, because only the store's clock counts.
    delay_ms = job.ready_at - job.created_at if lease is None else None
    left_ms = None if job.deadline_at is None else job.deadline_at - job.created_at
    state, attempt = ("QUEUED", 0) if lease is None else ("IN_PROGRESS", 1)
    head = events[-1]
    born = (state, attempt, head.n, head.event_hash.hex(), [columns(event) for event in events])
    digits = (OPENED, 0) if lease is None else (STARTED.activity, STARTED.guid)
    return (*job[:7], delay_ms, left_ms, *job[9:], *born, reservation and reservation[:3], lease, *digits)


def storable(text: str | None) -> str | None:
    """Return text that a column can hold: PostgreSQL knows no NUL character."""
    return None if text is None else text.replace("\0", "\ufffd")
