"""Answers of a store without workflows: an empty result, or an error that names the stores that have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, NoReturn

from tallystick.core.limits import TRANSACTION_MS_MAX
from tallystick.errors import BadInput
from tallystick.store.api import (
    ChildRow,
    Deliver,
    ExpiredAttempt,
    ForkJob,
    Group,
    HoldJob,
    Interrupted,
    Overdue,
    OwedHook,
    PruneJobs,
    ResumeJob,
    ShownValue,
    Transaction,
)

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


class NoWorkflows:
    """The part of a store that is about workflows, where there are none."""

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:  # noqa: ARG002 (nothing is heard)
        """Hear nothing: the service does not tell that others have written."""
        return lambda: None

    def next_due(self, queues: Sequence[str], after: int = 0) -> int | None:  # noqa: ARG002 (no queue has any)
        """Return None: no job waits for a worker."""
        return None

    def expired(self, limit: int) -> list[ExpiredAttempt]:  # noqa: ARG002 (there are none)
        """Return nothing: workers hold no leases here."""
        return []

    def has_signal(self, job_id: str, names: Sequence[str]) -> bool:  # noqa: ARG002 (there are none)
        """Tell that no signal was sent."""
        return False

    def values(self, job_ids: Sequence[str], name: str = "") -> list[ShownValue]:  # noqa: ARG002 (there are none)
        """Return nothing: protocol jobs show no values."""
        return []

    def began(self, job_id: str) -> dict[int, int]:  # noqa: ARG002 (as above)
        """Return nothing: no step is a fact of its own."""
        return {}

    def started_by(self, job_id: str, *, after: str, limit: int) -> list[str]:  # noqa: ARG002 (as above)
        """Return nothing: protocol jobs start no others."""
        return []

    def children(self, job_id: str, group: Group, *, after: str, limit: int) -> list[ChildRow]:  # noqa: ARG002 (as above)
        """Return nothing: there are no groups."""
        return []

    def finished_children(self, job_ids: Sequence[str]) -> dict[str, ChildRow]:  # noqa: ARG002 (as above)
        """Return nothing, for the same reason."""
        return {}

    def overdue(self, limit: int) -> list[Overdue]:  # noqa: ARG002 (as above)
        """Return nothing: protocol jobs have no deadline of their own."""
        return []

    def next_end(self) -> int | None:
        """Return None, for the same reason."""
        return None

    def owed_hooks(self, handlers: Sequence[str], limit: int) -> list[OwedHook]:  # noqa: ARG002 (as above)
        """Return nothing: hooks are for workflows."""
        return []

    def interrupted(self, job_ids: Sequence[str]) -> list[Interrupted]:  # noqa: ARG002 (as above)
        """Return nothing: no segment runs here."""
        return []

    def checkpoint(self) -> None:
        """Do nothing: the service keeps itself."""

    def connect(self) -> AbstractContextManager[Transaction]:
        """Refuse."""
        raise refuse("connections on loan")

    def transaction(self, ms_max: int = TRANSACTION_MS_MAX) -> AbstractContextManager[Transaction]:  # noqa: ARG002 (there is none)
        """Refuse."""
        raise refuse("transactions")

    def join(self, transaction: object) -> NoReturn:  # noqa: ARG002 (there is none)
        """Refuse."""
        raise refuse("transactions")

    def check_may_wait(self) -> None:
        """Let every thread wait: none holds a transaction."""
