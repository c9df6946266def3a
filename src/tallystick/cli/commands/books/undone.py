"""What the roles of workers have left undone: `tally doctor` asks once what each of them asks all the time.

A role that fails says so in the log of its worker, which is another process, and in what that worker
reports. What shows here as well is what the role leaves behind, or that its question fails here too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tallystick.cli.render.wording import count
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.store.api import Protocols, Store
from tallystick.store.inspection import Watched
from tallystick.worker.roles.cancel import EndOverdue
from tallystick.worker.roles.expire import Expire
from tallystick.worker.roles.reclaim import ReclaimLeases

_OR_SEE: Final = 'start a worker, or see in the log of the one that runs why it cannot ("refused in a sweep")'


class Undone(NamedTuple):
    """How much waits for each role, and why a role cannot look."""

    expired: int = 0
    overdue: int = 0
    remote_steps: int = 0
    failed: Sequence[str] = ()

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each role that leaves something undone, with what to do."""
        found = list(self.failed)
        if self.expired:
            found.append(
                f"{_many(self.expired, 'lease')} ran out and no worker has taken the jobs over yet; "
                "start a worker"
            )
        if self.overdue:
            found.append(
                f"the grace or deadline of {_many(self.overdue, 'job')} is over and no worker ended it yet; "
                f"{_OR_SEE}"
            )
        if self.remote_steps:
            found.append(
                f"the time of {_many(self.remote_steps, 'remote step')} is over and no worker acted yet; "
                f"{_OR_SEE}"
            )
        return found


def look(store: Store) -> Undone:
    """Ask the questions of the roles, each of them whatever becomes of the others."""
    failed: list[str] = []

    def asked(role: str, question: Callable[[int], Sequence[object]]) -> int:
        try:
            return len(question(SWEEP_ROWS_MAX))
        except Exception as error:  # noqa: BLE001 (what a role meets is what is to be shown)
            failed.append(
                f'"{role}" fails in every worker, because what it looks for cannot be read: {error}; '
                "mend or hold the job that is named"
            )
            return 0

    expired = asked(ReclaimLeases.name, store.expired)
    overdue = asked(EndOverdue.name, store.overdue)
    steps = asked(Expire.name, store.due_steps) if isinstance(store, Protocols) else 0
    return Undone(expired, overdue, steps, [*failed, *_reported(store)])


def _reported(store: Store) -> list[str]:
    """Return a sentence for each role that fails in workers which live, by what they report."""
    if not isinstance(store, Watched):
        return []
    now, failing = store.now(), defaultdict[tuple[str, str], list[str]](list)
    for worker in store.workers(SWEEP_ROWS_MAX):
        if worker.is_live(now):
            for about in worker.failing_roles.items():
                failing[about].append(f"{worker.host}/{worker.pid}")
    return [
        f'"{role}" fails in {count(len(workers), "worker")} ({workers[0]}): {error}; '
        f'see "worker: {role} failed" in the log'
        for (role, error), workers in sorted(failing.items())
    ]


def _many(number: int, what: str) -> str:
    return f"{SWEEP_ROWS_MAX} or more {what}s" if number >= SWEEP_ROWS_MAX else count(number, what)
