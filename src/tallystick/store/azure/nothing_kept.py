"""Reads of a check about workflows, for a store without workflows: all are empty."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.audit.book import ActivityRow, AttemptRow, Book
from tallystick.core.audit.removals import LogEnd, PrunedRow
from tallystick.core.effects.doubts import AwaitedKey, StuckEffect
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Place
from tallystick.core.remote.rows import ProtocolStep
from tallystick.core.watching.acts import ActRow
from tallystick.store.api import OpenWait, OwedHook, StoredEvent
from tallystick.store.inspection import KeptKey, WorkerLeases

# ruff: noqa: ARG002 (there is nothing to look for)


class NothingKept:
    """The reads of a check that are about workflows, effects, tags and removals."""

    def began(self, job_id: str, *, after: int, limit: int) -> dict[int, int]:
        """Return nothing: no step is a fact of its own."""
        return {}

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """Return nothing: no worker claims a protocol job."""
        return []

    def all_attempts(self, job_id: str) -> dict[str, list[AttemptRow]]:
        """Return nothing, for the same reason."""
        return {}

    def keys_of(self, job_id: str) -> list[EffectRow]:
        """Return nothing: there are no effects."""
        return []

    def open_keys(self, job_id: str, *, limit: int) -> list[EffectRow]:
        """Return nothing, for the same reason."""
        return []

    def awaited_keys(self, job_id: str, *, limit: int) -> list[AwaitedKey]:
        """Return nothing, for the same reason."""
        return []

    def stuck_effects(self, tenant_id: str | None, *, until: int, limit: int) -> list[StuckEffect]:
        """Return nothing, for the same reason."""
        return []

    def late_reports(self, job_id: str) -> list[tuple[int, str]]:
        """Return nothing, for the same reason."""
        return []

    def kept_keys(self, *, after: str, limit: int) -> list[KeptKey]:
        """Return nothing, for the same reason."""
        return []

    def asked_at(self, job_id: str) -> int | None:
        """Return nothing: acts are kept elsewhere."""
        return None

    def activities(self, job_id: str, *, after: Place, limit: int) -> list[ActivityRow]:
        """Return nothing: there are no waits and groups."""
        return []

    def open_children(self, job_id: str) -> dict[str, int]:
        """Return nothing: there are no children."""
        return {}

    def open_remotes(self, job_id: str) -> list[ProtocolStep]:
        """Return nothing: remote steps of workflows are elsewhere."""
        return []

    def remote_steps(self, job_id: str, *, after: Place, limit: int) -> list[ProtocolStep]:
        """Return nothing, for the same reason."""
        return []

    def tags(self, *, after: tuple[str, str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return nothing: protocol jobs have no tags."""
        return []

    def has_tags(self, job_id: str, tags: Sequence[str]) -> set[str]:
        """Return nothing, for the same reason."""
        return set()

    def removals(self, *, after: int, limit: int) -> list[PrunedRow]:
        """Return nothing: no job was removed by us."""
        return []

    def removals_of(self, job_id: str) -> list[PrunedRow]:
        """Return nothing, for the same reason."""
        return []

    def removals_end(self) -> LogEnd:
        """Return the end of a log without lines."""
        return LogEnd()

    def acts_log(self, *, after: int, limit: int) -> list[ActRow]:
        """Return nothing: no acts are kept."""
        return []

    def acts_told(self, job_id: str, verb: str) -> list[str]:
        """Return nothing, for the same reason."""
        return []

    def acts_end(self) -> LogEnd:
        """Return the end of a chain without lines."""
        return LogEnd()

    def removed_jobs(self, *, after: str, behind: int, limit: int) -> list[PrunedRow]:
        """Return nothing, for the same reason."""
        return []

    def trimmed(self, job_id: str) -> PrunedRow | None:
        """Return None: protocol jobs have no turns."""
        return None

    def turn_ends(self, job_id: str, *, limit: int) -> list[StoredEvent]:
        """Return nothing, for the same reason."""
        return []

    def newest_trim(self, job_id: str) -> StoredEvent | None:
        """Return None, for the same reason."""
        return None

    def open_waits(self, job_id: str, *, limit: int) -> list[OpenWait]:
        """Return nothing: there are no waits."""
        return []

    def open_child(self, job_id: str, step: str) -> str | None:
        """Return None: there are no children."""
        return None

    def unfinished(self, *, after: str, limit: int) -> list[str]:
        """Return nothing: all jobs are protocol jobs."""
        return []

    def held_as(self, hold: str, limit: int) -> list[str]:
        """Return nothing: protocol jobs are not held."""
        return []

    def held(self, limit: int) -> list[Book]:
        """Return nothing, for the same reason."""
        return []

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return nothing: workers hold no leases here."""
        return []

    def running_in_queues(self, limit: int) -> dict[str, int]:
        """Return nothing: workers hold no leases here."""
        return {}

    def hooks(self, limit: int) -> list[OwedHook]:
        """Return nothing: hooks are for workflows."""
        return []
