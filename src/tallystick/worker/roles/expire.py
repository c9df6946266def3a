"""Expire: remote steps whose time is over are tried again or ended, as the rules say."""

from __future__ import annotations

from typing import ClassVar

from tallystick.engine.sweep import expire_steps
from tallystick.store.api import Protocols
from tallystick.worker.roles.reclaim import sweep_seconds
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker


class Expire(Role):
    """Looks after protocol jobs of any process, at what `Protocols.due_steps` finds."""

    name: ClassVar = "expire remote steps"

    def __init__(self, worker: Worker, store: Protocols) -> None:
        """Prepare; the first turn looks."""
        self._worker = worker
        self._store = store
        self.every = sweep_seconds(worker)

    def run(self) -> None:
        """Act on what is due."""
        expire_steps(self._store, self._worker.committer, self._worker.ids)
