"""Retention: the books of jobs that ended long ago go, so many in one bundle, each whole or not at all."""

from __future__ import annotations

import msgspec

from tallystick.store.api import PruneJobs
from tallystick.store.writing import Writing

# What refers to a job goes before it. The databases refuse any other order, and every job that is not marked.
_BOOKS = ("events", "steps", "messages", "attempts", "outbox", "idempotency", "jobs")


def prune(batch: Writing, request: PruneJobs) -> int:
    """Mark jobs that may go, remove their books, and return how many jobs that were."""
    ended_by = batch.wall - request.older_ms
    found = batch.rows("mark_pruned", (ended_by, request.limit, batch.wall))
    if found:
        listed = msgspec.json.encode([job_id for (job_id,) in found]).decode()
        for books in _BOOKS:
            batch.run(f"prune_{books}", (listed,))
    return len(found)
