"""The form of tables: what of them decides anything. Two lives that came to one form go on alike.

Left out is what only tells how a job came there: instants of the past, hashes, revisions, and how often a
directive was tried that is out. What is to come counts from now, and versions count from that of the job. The
kinds of all facts stay, so two histories are two forms, and the books of each are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import msgspec

from tallystick.core.lifecycles import OutboxState
from tallystick.core.pictures import Message
from tallystick.core.remote.rows import OutboxRow
from tallystick.store.azure import keys
from tallystick.store.azure.heads import HeadRedo
from tallystick.store.azure.reading import LEFT_MS
from tests.azure.service import Tables

_PAST: Final = ("created_at", "updated_at", "sent_at", "acked_at", "completed_at", "at", "arrived")
_TO_COME: Final = ("lease_expires_at", "next_try_at", "look_at")
_NO_MATTER: Final = frozenset({*_PAST, "rev", "chain", "by"})
_TRIES: Final = frozenset({"tries", "next_try_at"})


class Form:
    """How the tables of one job look at an instant."""

    def __init__(self, tables: Tables, now: int) -> None:
        self._now = now
        self._rows = tables.rows
        ((_key, (_tag, self._head)),) = (
            (key, row) for key, row in tables.rows.items() if key[2] == keys.HEAD
        )
        self._redo = msgspec.json.decode(str(self._head["redo"]), type=HeadRedo)
        moved = self._redo.moved
        self._moved = None if moved is None else OutboxRow._make(moved)
        self._ways: dict[str, Callable[[Any], Hashable]] = {
            **dict.fromkeys(_TO_COME, lambda instant: int(instant) - now),
            **dict.fromkeys(("armed", "former"), self._look),
            "n": lambda n: n - self._head["n"],
            "pending": lambda text: self._directive(OutboxRow._make(msgspec.json.decode(text))._asdict()),
            "message": lambda text: self._told(Message._make(msgspec.json.decode(text))._asdict()),
        }

    def print(self) -> int:
        """Return what stands for it."""
        return hash(frozenset((key[0], self._row(key, values)) for key, (_tag, values) in self._rows.items()))

    def _row(self, key: tuple[str, str, str], values: Mapping[str, Any]) -> Hashable:
        table, _pk, rk = key
        if table == keys.EVENTS:
            return rk, values["type"], values["attempt"]
        if table == keys.DUE:
            return self._look(rk), self._told(values)
        if table == keys.OUTBOX:
            return rk, self._directive(values)
        if rk != keys.HEAD:
            return rk, self._told(values)
        redo = self._redo
        wanted = (
            None if redo.made is None else self._directive(OutboxRow._make(redo.made)._asdict()),
            None if self._moved is None else self._directive(self._moved._asdict()),
            None if redo.fact is None else redo.fact[2],
            (redo.ready, redo.gone, redo.mends),
        )
        alone = min(self._now - values["updated_at"], LEFT_MS)
        return (
            rk,
            self._told({name: value for name, value in values.items() if name != "redo"}),
            wanted,
            alone,
        )

    def _told(self, values: Mapping[str, Any]) -> Hashable:
        return frozenset((name, self._value(name, value)) for name, value in values.items())

    def _value(self, name: str, value: Any) -> Hashable:
        if not value or name in _NO_MATTER:
            return bool(value)
        way = self._ways.get(name)
        return value if way is None else way(value)

    def _look(self, rk: str) -> Hashable:
        """Return a row that says when to look: how long until then, and how many versions ago it was made."""
        instant, _job_id, n = rk.split(keys.JOIN)
        return int(instant) - self._now, int(n) - self._head["n"]

    def _directive(self, values: Mapping[str, Any]) -> Hashable:
        """Return a directive; whether it is behind what the job says of it matters, and how far."""
        over = _TRIES if values["state"] != OutboxState.PENDING else frozenset()
        told = self._told({name: value for name, value in values.items() if name not in over})
        moved = self._moved
        is_moved = moved is not None and moved.outbox_id == values["outbox_id"]
        return told, values["rev"] - moved.rev if is_moved else None
