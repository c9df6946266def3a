"""Jobs that end in one flush: what they still have is closed, and those that are children are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.core.decisions import count_down_all
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import JobState
from tallystick.store.api import EndJob, Event
from tallystick.store.groups import closes, count_child, group_of, wake_parent
from tallystick.store.sqlite.statements import sql
from tallystick.store.waits import close_waits

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch

# The digits of a child's message besides its ordinal: its outcome is stored and counted; it closed the group.
_COUNTED = int(GuidLedger.of(work_done=1, children_spawned=1))
_CLOSED = int(GuidLedger.of(closed_job=1, tasks_done=1))


def close_jobs(batch: Batch, requests: list[EndJob], events: list[Event]) -> None:
    """Close jobs whose attempts have ended, by what each of them began with and may have open."""
    started: list[tuple[object, ...]] = []
    woken: list[tuple[object, ...]] = []
    drivers, plain = [], []
    for r, event in zip(requests, events, strict=True):
        ending = (r.state, r.result, r.error, r.error_code, r.error_message)
        row = (*r.fence[:2], *ending, event.n, event.event_hash, batch.wall)
        begun_by_message = r.driver != "start"
        looked_at = r.waited or (begun_by_message and batch.careful)
        if looked_at:
            close_waits(batch, r)
        else:
            plain.append(r)
            if begun_by_message:
                drivers.append((r.driver, r.fence.job_id, batch.wall))
        if begun_by_message:
            woken.append((*row, int(not looked_at)))
        else:
            started.append(row)
    # A signal that nobody waited for ends with its job; mostly there is none, of anybody's.
    if plain and batch.rows("any_unread", ()):
        unread = [(*r.fence[:2], "" if r.driver == "start" else r.driver, batch.wall, True) for r in plain]
        batch.cursor.executemany(sql("drop_messages"), unread)
    count_children(batch, requests)
    for statement, rows in (("close_driver", drivers), ("end_job", started), ("end_woken_job", woken)):
        batch.many(statement, rows, requests[0].fence)


def count_children(batch: Batch, requests: list[EndJob]) -> None:
    """Count those that are children, in their order, and let each that closes a group wake its parent."""
    families: dict[tuple[str, str], list[EndJob]] = {}
    for request in requests:
        if request.parent is not None:
            families.setdefault(request.parent, []).append(request)
    for home, ended in families.items():
        if len(ended) == 1:
            count_child(batch, ended[0].fence.job_id, home, ended[0].state)
        else:
            _count_together(batch, home, ended)


def _count_together(batch: Batch, home: tuple[str, str], ended: list[EndJob]) -> None:
    """Read the group once, give each child its place in the order of ending, and move the group once.

    The file is locked, so the group that is written is the one that was read; the statement says so too.
    """
    place = (home[0], *group_of(home[1]))
    found = batch.rows("open_group", place)
    if not found:
        return
    ledger, semaphore, threshold, mode = found[0]
    entry = ActivityLedger(ledger).leg2_entries
    rows, closers, failed = [], 0, 0
    moves = count_down_all(semaphore, [-1] * len(ended), threshold)
    for ordinal, (request, move) in enumerate(zip(ended, moves, strict=True), start=entry + 1):
        hit = move is not None and move.hit
        digits = ordinal + _COUNTED + _CLOSED * hit
        rows.append((f"child:{request.fence.job_id}", *place, request.state, batch.wall, digits))
        failed += request.state != JobState.SUCCEEDED
        closers += closes(hit, mode, request.state)
    batch.many("insert_child_end", rows, ended[0].fence)
    batch.many("count_children", [(*place, ledger, semaphore, len(ended), failed)], ended[0].fence)
    for _closer in range(closers):
        wake_parent(batch, home)
