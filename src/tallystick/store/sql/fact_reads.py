"""The facts of a job as both SQL stores show them: events, and steps, whose rows are their own events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tallystick.core.audit.fingerprints import of_effect, of_group
from tallystick.core.audit.step_fact import told
from tallystick.core.effects.rows import EffectRow, unit_of
from tallystick.core.pictures import Message
from tallystick.core.remote.row_prints import of_remote
from tallystick.core.remote.rows import result_guid
from tallystick.store.api import StoredEvent
from tallystick.store.sql.protocol_pictures import remote_step

_ALL: Final = 2**63 - 1
_encode: Final = msgspec.json.Encoder().encode


class FactReads(ABC):
    """Facts, with the fingerprints that they carry made again from the rows."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    def history(self, job_id: str) -> list[StoredEvent]:
        """Return every event of a job in order, inline steps included."""
        return self.facts(job_id, after=0, limit=_ALL)

    def facts(self, job_id: str, *, after: int, limit: int) -> list[StoredEvent]:
        """Return the facts of a job that follow number `after`."""
        page = (job_id, after, limit)
        events = [StoredEvent._make(row) for row in self.rows("facts", page)]
        steps = self.rows("step_facts", page)
        kinds = {kind for _n, kind, *_rest in steps}
        prints = self._prints(page) if "remote" in kinds else {}
        prints |= self._key_prints(page) if "effect" in kinds else {}
        prints |= self._group_prints(page) if "group" in kinds else {}
        events += [told(job_id, *row, printed=prints.get(row[0])) for row in steps]
        events.sort(key=lambda event: event.n)
        return events[:limit]

    def _prints(self, page: tuple[str, int, int]) -> dict[int, str]:
        """Return the fingerprints of remote steps, by the places of their facts; a copy has none."""
        prints = {}
        for n, *row in self.rows("remote_facts", page):
            step = remote_step(row)
            if step.attempt_no:
                said = self.message(result_guid(step.job_id, step.step_id, step.attempt_no))
                prints[n] = of_remote(step, None if said is None else said.payload)
        return prints

    def _key_prints(self, page: tuple[str, int, int]) -> dict[int, str]:
        """Return the fingerprints of the keys of effects, by the places of the facts of their steps."""
        units = {
            unit_of((dimension, name, occurrence)): n
            for n, dimension, name, occurrence in self.rows("effect_facts", page)
        }
        keys = map(EffectRow._make, self.rows("keys_named", (page[0], _encode(list(units)).decode())))
        return {units[key.unit]: of_effect(key) for key in keys}

    def _group_prints(self, page: tuple[str, int, int]) -> dict[int, str]:
        """Return the fingerprints of groups, by the places of their facts."""
        return {n: of_group(threshold, mode) for n, threshold, mode in self.rows("group_facts", page)}

    def began(self, job_id: str, *, after: int = 0, limit: int = _ALL) -> dict[int, int]:
        """Return when steps and waits of a job began, by their places in its history."""
        return dict(self.rows("began", (job_id, after, limit)))

    def message(self, guid: str) -> Message | None:
        """Return one message."""
        return next((Message._make(row) for row in self.rows("message", (guid,))), None)
