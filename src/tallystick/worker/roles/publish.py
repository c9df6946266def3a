"""Publish: directives that are due are taken and handed to the relay, endpoint by endpoint.

A try is counted before it is published. Only so many are taken as the endpoint has room for, so that none
waits here while its right to be published runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from tallystick import crash
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import NotPublished, StepFence, TakeDirective
from tallystick.core.remote.rows import OutboxRow
from tallystick.store.api import Protocols
from tallystick.worker.relays.relay import Relay, tell_failed
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

LOOK_SECONDS: Final = 1.0
STRAY_MS: Final = 60_000
"""For how long a directive is left to workers that know its endpoint, before others count tries for it."""

TAKE_BEFORE: Final = crash.declare("relay.take.before", "directives are due and none is taken")
TAKE_AFTER: Final = crash.declare("relay.take.after", "tries are counted and nothing has been handed on")


class Publish(Role):
    """Takes what is due for the endpoints of this worker, and counts tries for endpoints that none has."""

    name: ClassVar = "publish"

    def __init__(self, worker: Worker, store: Protocols, relay: Relay | None) -> None:
        """Prepare; the first turn looks."""
        self._worker = worker
        self._store = store
        self._relay = relay
        self._pulse = -1
        self._look_at = 0.0
        self._strays_at = 0.0
        self.rest = LOOK_SECONDS

    def run(self) -> None:
        """Look if something was written, or if it was long ago."""
        pulse, now = self._worker.store.pulse(), self._worker.clock.monotonic()
        if pulse == self._pulse and now < self._look_at:
            return
        self._pulse, self._look_at = pulse, now + LOOK_SECONDS
        self.take()
        if now >= self._strays_at:
            self._strays_at = now + STRAY_MS / 1000
            self._count_strays()

    def look_soon(self) -> None:
        """Look in the next turn, whatever was written: there is room again."""
        self._look_at = 0.0

    def take(self) -> None:
        """Take what is due, as much as there is room for."""
        relay = self._relay
        if relay is None:
            return
        due: list[OutboxRow] = []
        for address, line in relay.lines.items():
            room = line.room
            found = self._store.due_directives(address, room) if room else []
            line.hungry = len(found) >= room
            due += found
        self._taken(due, relay.offer)

    def _count_strays(self) -> None:
        """Count a try of what is due for an endpoint that no worker has: else it would wait for ever."""
        known = () if self._relay is None else tuple(self._relay.lines)
        strays = self._store.stray_directives(known, STRAY_MS, SWEEP_ROWS_MAX)
        heard: list[Hearing] = []
        self._taken(strays, heard.append)
        rows = [hearing.directive for hearing in heard if hearing.directive is not None]
        notes = [
            NotPublished(
                StepFence(row.job_id, row.step_id, row.attempt_no, row.lease_id),
                row.tries,
                f"no worker publishes to {row.via}: declare it with app.service",
                told="is at an endpoint to which no worker publishes",
            )
            for row in rows
        ]
        committer = self._worker.committer
        for row, outcome in zip(rows, committer.call_all([(note,) for note in notes]), strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            tell_failed(committer.observers, row.service, outcome)

    def _taken(self, due: Sequence[OutboxRow], hand_on: Callable[[Hearing], None]) -> None:
        """Count a try of each in one flush, hand on those that are ours, and tell of what was refused."""
        if not due:
            return
        crash.point(TAKE_BEFORE)
        takes = [(TakeDirective(row.job_id, row.step_id, row.attempt_no),) for row in due]
        outcomes = self._worker.committer.call_all(takes)
        crash.point(TAKE_AFTER)
        for outcome in outcomes:
            if isinstance(outcome, Hearing) and outcome.heard is Heard.TAKEN:
                hand_on(outcome)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
