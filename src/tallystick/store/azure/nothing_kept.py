"""Answers of a store without workflows: nothing, or an error that names the stores that have them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn

from tallystick.core.audit.removals import LogEnd
from tallystick.core.limits import TRANSACTION_MS_MAX
from tallystick.errors import BadInput
from tallystick.store.api import Deliver, ForkJob, HoldJob, PruneJobs, ResumeJob, Transaction

# ruff: noqa: ARG001, ARG002 (there is nothing to look for)

_ASKED: Final = {
    Deliver: "signals",
    ForkJob: "forks, retries and redrives",
    HoldJob: "pauses",
    ResumeJob: "pauses",
    PruneJobs: "removals (prune)",
}


def refuse_request(request: object) -> BadInput:
    """Return the error about a request for something else, in the words of the person who asked."""
    asked = _ASKED.get(type(request), f"requests like {type(request).__name__}, of workflows,")
    return refuse(asked)


def refuse(what: str) -> BadInput:
    """Return the error that says which stores do what was asked."""
    return BadInput(f"Azure Tables keep protocol jobs alone: {what} need SQLite or PostgreSQL")


def _rows(self: object, *asked: Any, **about: Any) -> list[Any]:  # noqa: ANN401 (whatever is asked)
    """Return nothing."""
    return []


def _by_name(self: object, *asked: Any, **about: Any) -> dict[Any, Any]:  # noqa: ANN401 (whatever is asked)
    """Return nothing."""
    return {}


def _none(self: object, *asked: Any, **about: Any) -> None:  # noqa: ANN401 (whatever is asked)
    """Return nothing."""


def _log_end(self: object) -> LogEnd:
    """Return the end of a log without lines."""
    return LogEnd()


class NoWorkflows:
    """The part of a store that is about workflows, where there are none."""

    # Workers hold no leases here, and nothing waits for them.
    expired = interrupted = overdue = _rows
    next_due = next_end = checkpoint = _none
    # Protocol jobs show no values, start no others, and have no hooks; no step of theirs is a fact.
    values = started_by = children = owed_hooks = _rows
    began = finished_children = _by_name

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:
        """Hear nothing: the service does not tell that others have written."""
        return lambda: None

    def has_signal(self, job_id: str, names: object) -> bool:
        """Tell that no signal was sent."""
        return False

    def connect(self) -> AbstractContextManager[Transaction]:
        """Refuse."""
        raise refuse("connections on loan")

    def transaction(self, ms_max: int = TRANSACTION_MS_MAX) -> AbstractContextManager[Transaction]:
        """Refuse."""
        raise refuse("transactions")

    def join(self, transaction: object) -> NoReturn:
        """Refuse."""
        raise refuse("transactions")

    def check_may_wait(self) -> None:
        """Let every thread wait: none holds a transaction."""


class NothingKept:
    """The reads of a check that are about workflows, effects, tags, acts and removals."""

    # No worker claims a protocol job, so there are no attempts, leases and hooks.
    attempts = leases = hooks = _rows
    began = all_attempts = running_in_queues = _by_name
    # There are no effects.
    keys_of = open_keys = awaited_keys = stuck_effects = forgotten_effects = late_reports = kept_keys = _rows
    # There are no waits, groups, children and remote steps of workflows.
    activities = open_waits = open_remotes = remote_steps = _rows
    open_children = _by_name
    open_child = _none
    # All jobs are protocol jobs, none is held, and none has tags or turns.
    unfinished = held = held_as = tags = turn_ends = _rows
    trimmed = newest_trim = _none
    # Nothing was removed by us, and acts are kept elsewhere.
    removals = removals_of = removed_jobs = removed_with_keys = acts_log = acts_told = _rows
    removals_end = acts_end = _log_end
    asked_at = _none

    def has_tags(self, job_id: str, tags: object) -> set[str]:
        """Return nothing: protocol jobs have no tags."""
        return set()
