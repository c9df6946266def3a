"""Requests that are the same few statements on every SQL store, written one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallystick.core.effects.requests import PruneEffects
from tallystick.core.queues.reusing import TakeKey
from tallystick.core.queues.rows import SaveQueue
from tallystick.core.watching.acts import NoteAct
from tallystick.core.watching.rows import LeaveWorker, ReportWorker
from tallystick.store.api import (
    DropSchedule,
    ForkJob,
    OfTenant,
    Outcome,
    Primitive,
    PruneJobs,
    SaveSchedule,
    TakeHook,
    TellHook,
    TrimTurns,
)
from tallystick.store.forks import fork_job
from tallystick.store.pruning import prune, prune_effects, trim
from tallystick.store.sql.hooking import take_hook, tell_hook
from tallystick.store.sql.queueing.keys_of_jobs import take_key
from tallystick.store.sql.queueing.rows import save_queue
from tallystick.store.sql.schedules import write_schedule
from tallystick.store.sql.watching import check_owner, leave_worker, note_act, report_worker

ONE_BY_ONE: Final[dict[type[Primitive], tuple[str, Callable[[Any, Any], Outcome]]]] = {
    ForkJob: ("fork", fork_job),
    PruneJobs: ("prune", prune),
    PruneEffects: ("prune", prune_effects),
    TrimTurns: ("trim", trim),
    TakeHook: ("hook", take_hook),
    TellHook: ("hook", tell_hook),
    SaveSchedule: ("schedule", write_schedule),
    DropSchedule: ("schedule", write_schedule),
    SaveQueue: ("queue", save_queue),
    TakeKey: ("key", take_key),
    ReportWorker: ("worker", report_worker),
    LeaveWorker: ("worker", leave_worker),
    NoteAct: ("act", note_act),
    # It writes nothing, and stands beside the act.
    OfTenant: ("act", check_owner),
}
"""The name of the crash points of each, and what writes it in an open transaction."""
