"""Maintenance: the background of a worker. Each role has its turns, and none waits for the error of another.

Leases are renewed by a loop of their own, so that nothing that the other roles wait for costs a lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tallystick.core.limits import clip_text
from tallystick.engine.observe import JobFinished, JobHeld
from tallystick.store.api import Effects, Protocols, Schedules
from tallystick.store.inspection import Watched
from tallystick.worker.refusals import Reasons
from tallystick.worker.relays.relay import Relay
from tallystick.worker.roles.call_hooks import CallHooks
from tallystick.worker.roles.cancel import EndOverdue
from tallystick.worker.roles.expire import Expire
from tallystick.worker.roles.give_back import GiveBack
from tallystick.worker.roles.look import LookForWork
from tallystick.worker.roles.prune import Prune
from tallystick.worker.roles.publish import Publish
from tallystick.worker.roles.reclaim import ReclaimLeases
from tallystick.worker.roles.reconcile import Reconcile
from tallystick.worker.roles.renew import Renew
from tallystick.worker.roles.report import ReportLife
from tallystick.worker.roles.role import Role
from tallystick.worker.roles.schedule import TickSchedules
from tallystick.worker.worker import Worker

RETRY_SECONDS_MIN: Final = 0.25
# What the store did not take is given back within a second of when it can.
RETRY_SECONDS_MAX: Final = 0.5
_ERROR_BYTES: Final = 300

_log = logging.getLogger("tallystick.worker")


class Maintenance:
    """The roles of one worker and the two loops that drive them."""

    def __init__(self, worker: Worker, relay: Relay | None = None) -> None:
        """Prepare the loops; nothing runs before `start`."""
        self._worker = worker
        self._hush: Callable[[], None] = lambda: None
        self.renew = Renew(worker, on_late=self._reclaim_soon)
        self._reclaim = ReclaimLeases(worker, lambda: self.renew.excused)
        roles = [
            GiveBack(worker, self._reclaim.run),
            self._reclaim,
            EndOverdue(worker),
            LookForWork(worker, min(RETRY_SECONDS_MIN, self.renew.rest)),
        ]
        options = worker.options
        if options.keep_ms is not None or options.keep_effects_ms is not None:
            roles.append(Prune(worker, options.keep_ms, options.keep_effects_ms))
        if worker.options.expires and isinstance(worker.store, Protocols):
            publish = Publish(worker, worker.store, relay)
            roles += [Expire(worker, worker.store, relay), publish]
            if relay is not None:
                relay.on_room = partial(self._publish_soon, publish)
        if isinstance(worker.store, Schedules):
            roles.append(TickSchedules(worker))
        self._report = ReportLife(worker) if isinstance(worker.store, Watched) else None
        if self._report is not None:
            roles.append(self._report)
        retry_max = min(RETRY_SECONDS_MAX, self.renew.rest)
        self._rounds = Loop("tally-maintenance", roles, worker, retry_max)
        self._heartbeat = Loop("tally-heartbeat", [self.renew], worker, retry_max)
        # A function of the user may take its time, and keeps no other role from its turn.
        self._hooks = Loop("tally-hooks", [CallHooks(worker)], worker, retry_max) if worker.hooks else None
        self._reconcile = (
            Loop("tally-reconcile", [Reconcile(worker, worker.store)], worker, retry_max)
            if worker.options.probes and isinstance(worker.store, Effects)
            else None
        )
        self._deaf: list[Callable[[], None]] = []
        worker.finishing = self._finish_hooks

    @property
    def roles(self) -> dict[str, Role]:
        """Return the roles of the rounds by their names."""
        return self._rounds.roles

    def start(self) -> None:
        """Begin."""
        self._hush = self._worker.store.listen(self._heard, self._worker.owner)
        self._rounds.start()
        self._heartbeat.start()
        if self._reconcile is not None:
            self._reconcile.start()
        if self._hooks is not None:
            observers, rouse = self._worker.committer.observers, self._hooks.rouse
            self._deaf = [observers.on(kind, lambda _happened: rouse()) for kind in (JobFinished, JobHeld)]
            self._hooks.start()

    def _finish_hooks(self) -> None:
        """Call what is owed once more, within the grace; what is left then is owed to the next worker."""
        for stop in self._deaf:
            stop()
        if self._hooks is not None:
            self._hooks.stop(self._worker.options.grace_ms / 1000, last_turn=True)

    def stop(self) -> None:
        """End, after the round that runs now."""
        self._hush()
        if self._reconcile is not None:
            self._reconcile.stop(self._worker.options.grace_ms / 1000)
        self._rounds.stop()
        self._heartbeat.stop()
        if self._report is not None:
            self._report.leave()

    def _heard(self) -> None:
        """Begin the next round at once: another process has written. A busy worker looks when it is idle."""
        if self._worker.idle:
            self._rounds.rouse()
        else:
            self._worker.poke()

    def _publish_soon(self, publish: Publish) -> None:
        publish.look_soon()
        self._rounds.rouse(publish)

    def _reclaim_soon(self) -> None:
        self._rounds.rouse(self._reclaim)


class Loop:
    """One thread that gives each of its roles a turn when that is due."""

    def __init__(self, name: str, roles: Sequence[Role], worker: Worker, retry_max: float) -> None:
        """Prepare the thread; a role that fails has its next turn after `retry_max` seconds at the latest."""
        self._clock = worker.clock
        self._stopping = self._last_turn = False
        self._roused = threading.Event()
        self._turns = [_RoleTurns(role, worker, retry_max) for role in roles]
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def roles(self) -> dict[str, Role]:
        """Return the roles by their names."""
        return {turns.role.name: turns.role for turns in self._turns}

    def start(self) -> None:
        """Begin with a pause; the first round is after it."""
        self._thread.start()

    def stop(self, seconds: float | None = None, *, last_turn: bool = False) -> None:
        """End after the round that runs now, and one more if wanted; wait for it no longer than `seconds`."""
        self._stopping, self._last_turn = True, last_turn
        self._roused.set()
        self._thread.join(seconds)

    def rouse(self, *roles: Role) -> None:
        """Begin the next round at once, with a turn for these roles too."""
        for turns in self._turns:
            if turns.role in roles:
                turns.due_at = self._clock.monotonic()
        self._roused.set()

    def _run(self) -> None:
        while True:
            self._roused.wait(min(turns.rest for turns in self._turns))
            self._roused.clear()
            stopping = self._stopping
            if stopping and not self._last_turn:
                return
            now = self._clock.monotonic()
            for turns in self._turns:
                if now >= turns.due_at:
                    turns.take(now)
            if stopping:
                return


class _RoleTurns:
    """The turns of one role, and its pause after a turn that failed."""

    def __init__(self, role: Role, worker: Worker, retry_max: float) -> None:
        self.role = role
        self.due_at = worker.clock.monotonic()
        self._failing = worker.failing
        self._retry_max = retry_max
        self._retry = 0.0
        self._told = Reasons()

    @property
    def rest(self) -> float:
        """Return how long the next round may be away, in real seconds."""
        return self._retry or self.role.rest

    def take(self, now: float) -> None:
        """Take a turn; an error is logged once for each reason, and the next turn comes after a pause."""
        try:
            self.role.run()
        except Exception as error:  # noqa: BLE001 (a role that ends would end all others, and every lease with them)
            # A store that is away for a while is not the end of the worker: it goes on when it is back.
            self._retry = min(max(2 * self._retry, RETRY_SECONDS_MIN), self._retry_max)
            self._failing[self.role.name] = clip_text(f"{type(error).__name__}: {error}", _ERROR_BYTES)
            if self._told.is_new(error):
                about = {"action": "role.failed", "role": self.role.name}
                _log.warning("worker: %s failed: %s", self.role.name, error, exc_info=True, extra=about)
        else:
            self._retry = 0.0
            self._told.forget()
            self._failing.pop(self.role.name, None)
        if self.role.every:
            self.due_at = now + max(self.role.every, self._retry)
