"""Expire: remote steps whose time is over are tried again or ended, as the rules say."""

from __future__ import annotations

from typing import ClassVar

from tallystick.engine.sweep import expire_steps
from tallystick.store.api import Protocols
from tallystick.worker.relays.relay import Relay
from tallystick.worker.roles.reclaim import sweep_seconds
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker


class Expire(Role):
    """Looks after protocol jobs of any process, at what `Protocols.due_steps` finds."""

    name: ClassVar = "expire remote steps"

    def __init__(self, worker: Worker, store: Protocols, relay: Relay | None) -> None:
        """Prepare; the first turn looks. The relay publishes the next directives at once."""
        self._worker = worker
        self._store = store
        self._relay = relay
        self.every = sweep_seconds(worker)

    def run(self) -> None:
        """Act on what is due."""
        relay, worker = self._relay, self._worker
        relays = relay is not None and relay.eager
        for hearing in expire_steps(self._store, worker.committer, worker.ids, relays=relays):
            if relay is not None:
                relay.offer(hearing)
