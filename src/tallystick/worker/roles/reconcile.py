"""Reconcile: effects that are in doubt are asked for, by the probes that the program declares.

It looks once per second, at what `Effects.due_probes` finds.
"""

from __future__ import annotations

from typing import ClassVar, Final

from tallystick.engine.sweep import ask_probes
from tallystick.store.api import Effects
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

LOOK_SECONDS: Final = 1.0


class Reconcile(Role):
    """Asks probes of effects of any worker, for effects that this program declares."""

    name: ClassVar = "reconcile"
    rest = LOOK_SECONDS

    def __init__(self, worker: Worker, store: Effects) -> None:
        """Prepare; the first turn looks."""
        self._worker = worker
        self._store = store

    def run(self) -> None:
        """Ask what can be asked now, one after the other."""
        worker = self._worker
        if ask_probes(self._store, worker.committer, worker.options.probes, worker.call):
            worker.poke()
