"""Why a job stands where it stands: one sentence, from its row and its newest facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from tallystick.core.lifecycles import JobState
from tallystick.core.verbs.asking import DEADLINE
from tallystick.store.api import JobRow, StoredEvent


def why(row: JobRow, history: Callable[[], Sequence[StoredEvent]], now: int) -> str:
    """Say what a job waits for, since when and until when, or how it ended.

    The history is read only for a job that is under way: it may be long.
    """
    if row.completed_at is not None:
        return _ended(row)
    if row.hold is not None:
        return f"it is held ({row.hold}) since {_at(row.updated_at)}: {row.hold_reason}; resume it"
    if row.state == JobState.CANCELLING:
        because = ", because its deadline has passed," if row.error_code == DEADLINE else ""
        return f"it was asked to end at {_at(row.updated_at)}{because} and cleans up"
    stands = _queued(row, now) if row.state == JobState.QUEUED else _under_way(row, history()[-1], now)
    if row.deadline_at is None:
        return stands
    return f"{stands}; it is cancelled at {_at(row.deadline_at)} if it has not ended by then"


def _ended(row: JobRow) -> str:
    at = _at(row.completed_at)
    if row.state == JobState.SUCCEEDED:
        return f"it succeeded at {at}"
    if row.state == JobState.CANCELLED:
        because = ": its deadline has passed" if row.error_code == DEADLINE else ""
        return f"it was cancelled at {at}{because}"
    return f"it failed at {at} with {row.error_code}: {row.error_message}"


def _queued(row: JobRow, now: int) -> str:
    if row.ready_at is not None and row.ready_at > now:
        return f"it is not due before {_at(row.ready_at)}"
    handler = f"{row.handler} {row.version}".rstrip()
    return f"it waits since {_at(row.ready_at)} for a worker on queue {row.queue} that knows {handler}"


def _under_way(row: JobRow, last: StoredEvent, now: int) -> str:
    due = row.ready_at is not None and row.ready_at <= now
    if row.ready_at is None and last.type != "suspend":
        return f"it runs since {_at(last.at)} in attempt {row.attempt}, or its worker was lost"
    if due:
        return f"it can go on since {_at(row.ready_at)} and waits for a worker on queue {row.queue}"
    until = "" if row.ready_at is None else f" until {_at(row.ready_at)}"
    if last.type == "suspend":
        return f"it waits since {_at(last.at)} for {msgspec.json.decode(last.payload)['for']}{until}"
    return f"it is tried again at {_at(row.ready_at)}"


def _at(ms: int | None) -> str:
    return "?" if ms is None else f"{datetime.fromtimestamp(ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S}Z"
