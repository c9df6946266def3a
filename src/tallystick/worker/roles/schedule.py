"""Schedule: ticks that are due become jobs, whichever process declared their schedules."""

from __future__ import annotations

from typing import ClassVar, Final

from tallystick.worker.clockwork import Clockwork
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

REST_SECONDS_MIN: Final = 0.02
REST_SECONDS_MAX: Final = 5.0
# Where there is no schedule, one that another process adds is seen after this time.
REST_SECONDS_NONE: Final = 10.0


class TickSchedules(Role):
    """Looks when the next tick is due, and now and then for schedules that others have changed."""

    name: ClassVar = "schedule"
    every = REST_SECONDS_MAX
    rest = REST_SECONDS_MAX

    def __init__(self, worker: Worker) -> None:
        """Prepare; the first turn looks."""
        self._clockwork = Clockwork(worker.store, worker.committer, worker.clock, worker.ids)

    def run(self) -> None:
        """Act on what is due, and say when to look again."""
        rest_ms = self._clockwork.rest_ms()
        if rest_ms == 0:
            self._clockwork.turn()
            rest_ms = self._clockwork.rest_ms()
        if rest_ms is None:
            self.every = self.rest = REST_SECONDS_NONE
        else:
            self.every = self.rest = min(max(rest_ms / 1000, REST_SECONDS_MIN), REST_SECONDS_MAX)
