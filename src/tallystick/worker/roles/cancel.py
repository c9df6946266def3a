"""Cancel: end jobs whose grace is over, and cancel jobs whose deadline has passed.

It keeps the instant at which the next grace or deadline is over (`Store.next_end`), and asks for it again
when a process has written.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from tallystick.engine.sweep import end_overdue
from tallystick.worker.notices import notice_ended
from tallystick.worker.roles.reclaim import sweep_seconds
from tallystick.worker.roles.role import Role
from tallystick.worker.timer import Timer
from tallystick.worker.worker import Worker

LOOK_SECONDS: Final = 0.1


class EndOverdue(Role):
    """Ends jobs whose grace or deadline is over, some in each turn, so that other roles have theirs."""

    name: ClassVar = "end what is overdue"

    def __init__(self, worker: Worker) -> None:
        """Prepare; the first turn looks."""
        self._worker = worker
        self._timer = Timer(worker.clock)
        self._pulse = -1

    def run(self) -> None:
        """End what is overdue now; whatever is left has the next turn at once."""
        worker = self._worker
        pulse = worker.store.pulse()
        if pulse != self._pulse:
            self._timer.set(worker.store.next_end())
            self._pulse = pulse
        if not self._timer.is_over():
            self._rest_until_then()
            return
        self.rest = math.inf
        ended = end_overdue(worker.store, worker.committer)
        for job_id, asked in ended:
            notice_ended(worker, job_id, asked=asked)
        self._timer.set(worker.store.next_end())
        if ended:
            self.every, self.rest = 0.0, 0.0
        elif self._timer.is_over():
            # What the books refuse now they refuse again: it is tried as often as a lost lease is looked for.
            self.every = sweep_seconds(worker)
        else:
            # The clock of this process was ahead of that of the store.
            self._rest_until_then()

    def _rest_until_then(self) -> None:
        """Ask for a turn at the very instant for which it waits, or when something is written before."""
        self.rest = self._timer.left
        self.every = min(LOOK_SECONDS, self.rest)
