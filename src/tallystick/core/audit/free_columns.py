"""The columns that may change in the books of a job without `tally verify` seeing it, and why.

Everything else is told by facts, or follows from other rows. A test changes every column of every table and
compares what is not found with this list, so it is neither too short nor too long.
"""

from __future__ import annotations

from typing import Final

_WRITTEN: Final = "how often a row was written: a guard while the row can change, and nothing afterwards"
_INSTANT: Final = "an instant by the clock of the store that no fact names; only its order is checked"
_LEASE: Final = "when a lease would have ended: heartbeats move it, and it means nothing after the end"
_NAME: Final = "of a signal: the name by which its sender would send it again"
UNREAD: Final = "of a signal that was never taken: no fact can name it, because its job never read it"
_HOOK: Final = "how far the delivery of hooks has come: it is no part of the job"
_HOOKS: Final = "which hooks the program declares: the claim of a newer program says it anew, without a fact"
_SAME_INSTANT: Final = "of two children that ended in one millisecond: which of them was counted first"
_SHOWN: Final = "what a job showed while it ran: the last value of each name, no history"
_LATE: Final = "reports that were refused because they came too late, kept for people"
_CLOCK: Final = "how far the clock of a SQLite file is ahead: it moves with every write"
NEWEST: Final = "of the newest line of this log: nothing follows that would miss it, but a seal"
_WATCHED: Final = "what workers report of themselves, for graphs: no part of any job"
_SETTING: Final = "what holds from now on: people and programs change it without a fact"
_PLANNED: Final = "when a publisher or a sweep looks again: it changes without a fact"
_TRAVELLED: Final = "of a directive for a step of a workflow: how it travelled, which no fact tells"

RUNS: Final = "of a job that a worker runs: the worker tells of a hold when it stops for it"
ASKED: Final = "of a job that was asked to end: whether because its time was over; its last fact tells it"
ON_ITS_WAY: Final = "of a remote step that is on its way: reports move it, and the fact of its end tells it"
LOOKED_AT: Final = "when a remote step is looked at again: reports and heartbeats move it without a fact"
NOT_BORN: Final = "of a group whose children are not all born: how many there will be"
IN_DOUBT: Final = "of an effect that is open: when and why it is looked at; what it comes to is told"

_LIMITED: Final = "what claims of queues with limits note for the claims that follow: no part of the job"

FREE: Final[dict[tuple[str, str], str]] = {
    ("jobs", "rev"): _WRITTEN,
    ("jobs", "created_at"): _INSTANT,
    ("jobs", "cancel_at"): _INSTANT,
    ("jobs", "hooks"): _HOOKS,
    **dict.fromkeys([("jobs", f"hook_{name}") for name in ("told", "at", "tries", "error")], _HOOK),
    ("jobs", "began_in"): _LIMITED,
    ("attempts", "lease_epoch"): _LEASE,
    ("attempts", "lease_expires_at"): _LEASE,
    ("attempts", "finished_at"): _INSTANT,
    ("steps", "rev"): _WRITTEN,
    ("steps", "created_at"): _INSTANT,
    ("steps", "updated_at"): _INSTANT,
    **dict.fromkeys(
        [("messages", name) for name in ("created_at", "arrived", "due_at", "acked_at")], _INSTANT
    ),
    **dict.fromkeys(
        [
            ("messages", name)
            for name in ("job_id", "dimension", "name", "payload", "redeliveries", "row gone", "row twice")
        ],
        UNREAD,
    ),
    ("messages", "guid"): _NAME,
    ("messages", "rows swapped"): _SAME_INSTANT,
    ("effect_keys", "rev"): _WRITTEN,
    ("pruned", "row gone"): NEWEST,
    ("acts", "row gone"): NEWEST,
    **dict.fromkeys([("outbox", name) for name in ("rev", "tries", "next_try_at", "updated_at")], _PLANNED),
    **dict.fromkeys(
        [("outbox", name) for name in ("created_at", "sent_at", "taken_by", "reason")], _TRAVELLED
    ),
}
"""By table and column; that a row is gone, comes twice or has another's place stands here like a column."""

FREE_OPEN: Final[dict[tuple[str, str], str]] = {
    ("jobs", "updated_at"): _INSTANT,
    ("jobs", "hold"): RUNS,
    ("jobs", "hold_reason"): RUNS,
    ("jobs", "error_code"): ASKED,
    **dict.fromkeys(
        [
            ("steps", name)
            for name in ("acked_at", "answers", "last_error_code", "last_error_message", "options")
        ],
        ON_ITS_WAY,
    ),
    ("steps", "lease_expires_at"): LOOKED_AT,
    ("steps", "semaphore"): NOT_BORN,
    **dict.fromkeys([("effect_keys", name) for name in ("called_at", "doubt", "due_at", "probes")], IN_DOUBT),
}
"""Those of a job that goes on, of a step that is open, and of an effect that is."""

FREE_ROWS: Final = {
    ("effect_keys", "of a job or turn that an older version has removed"): (
        "lines of the log of removals did not say which keys they leave"
    ),
    ("effect_keys", "of an effect that was not called again before its job ended, `called_at`"): _INSTANT,
}
"""Rows of which some or all columns are free."""

FREE_TABLES: Final = {
    "api_keys": f"{_SETTING}; what no key can be is found",
    "job_values": _SHOWN,
    "stale_reports": _LATE,
    "clock": _CLOCK,
    "workers": _WATCHED,
    "ended_by_minute": _WATCHED,
    "queues": _LIMITED,
    "queue_slots": _LIMITED,
    "queue_buckets": _LIMITED,
}
"""Tables of which every column is free."""


BOUND_SETTINGS: Final = (
    "schedule_id",
    "tenant_id",
    "jitter_ms",
    "next_at",
    "due_at",
    "last_at",
    "waits_since",
)
"""Of a schedule that has ticked: what must agree with its timetable and with the job of its last tick."""


def open_table() -> str:
    """Return what else is free while a job goes on, as a table for people."""
    return _table([f"| `{table}.{column}` | {why} |" for (table, column), why in FREE_OPEN.items()])


def _table(rows: list[str]) -> str:
    return "\n".join(["| column | why |", "|---|---|", *rows])


def free_table() -> str:
    """Return the list as a table for people.

    >>> free_table().splitlines()[2]
    '| `jobs.rev` | how often a row was written: a guard while the row can change, and nothing afterwards |'
    """
    rows = [f"| `{table}.{column}` | {why} |" for (table, column), why in FREE.items()]
    bound = ", ".join(f"`{column}`" for column in BOUND_SETTINGS)
    rows.append(f"| `schedules`, all but {bound} | {_SETTING}; what no schedule can be is found |")
    rows += [f"| `{table}` {which} | {why} |" for (table, which), why in FREE_ROWS.items()]
    rows += [f"| `{table}`, all of it | {why} |" for table, why in FREE_TABLES.items()]
    return _table(rows)
