"""What a person who wants to deceive would write into a cell: values that look as if they belonged there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.rows import Came, Phase
from tallystick.core.lifecycles import ATTEMPT, JOB, OUTBOX, STEP
from tallystick.core.pictures import CANCEL, START
from tallystick.core.verbs.holds import Hold

HOUR = 3_600_000
# How many values of other rows are tried in the place of one.
OTHERS = 4
# What a column may say that has a few words: a change to another of them is one that a thief would make.
WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("jobs", "state"): tuple(state.value for state in JOB.states),
    ("jobs", "hold"): tuple(hold.value for hold in Hold),
    ("jobs", "kind"): ("workflow", "protocol", "map"),
    ("jobs", "error_code"): ("DEADLINE",),
    ("attempts", "status"): tuple(state.value for state in ATTEMPT.states),
    ("attempts", "reason"): tuple(reason.value for reason in AbortReason),
    ("attempts", "guid"): (START,),
    ("attempts", "lease_owner"): ("by hand", CANCEL),
    ("attempts", "lease_id"): (CANCEL,),
    ("steps", "state"): tuple(state.value for state in STEP.states),
    ("steps", "kind"): ("step", "tx", "effect", "remote", "wait", "sleep", "group", "protocol"),
    ("messages", "kind"): ("start", "signal", "timer", "child", "result", "resume"),
    ("outbox", "state"): tuple(state.value for state in OUTBOX.states),
    ("effect_keys", "outcome"): tuple(came.value for came in Came),
    ("effect_keys", "phase"): tuple(phase.value for phase in Phase),
    ("effect_keys", "state"): tuple(state.value for state in ATTEMPT.states),
}
_INTEGER, _BLOB = "INTEGER", "BLOB"


class HostileValues:
    """The values that are tried in the cells of a table."""

    def __init__(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self._table = table
        names = rows[0] if rows else {}
        self._others = {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}

    def of(self, row: dict[str, Any], name: str, kind: str, *, nullable: bool) -> list[Any]:
        """Values that the cell does not have, each once: none, of its kind, of its row, of other rows."""
        before = row[name]
        values = [None] if nullable else []
        values += {_INTEGER: self._numbers, _BLOB: self._bytes}.get(kind, self._texts)(row, name)
        others = [value for value in self._others[name] if value is not None]
        at = others.index(before) if before in others else 0
        values += (others[at + 1 :] + others[:at])[:OTHERS]
        return [value for value in dict.fromkeys(values) if value != before]

    def _numbers(self, row: dict[str, Any], name: str) -> Iterator[int]:
        before = row[name]
        yield from (0, -1, 1)
        if before is not None:
            yield from (before + 1, before - 1, before + 1_000, before - 1_000, before + HOUR)
        if name.endswith(("_at", "arrived")):
            yield from (row[other] for other in row if other.endswith("_at") and row[other] is not None)
        if name.endswith("ledger") and before is not None:
            text = f"{before:015d}"
            for place, digit in enumerate(text):
                for other in {"0", "1", str((int(digit) + 1) % 10)} - {digit}:
                    yield int(text[:place] + other + text[place + 1 :])

    def _texts(self, row: dict[str, Any], name: str) -> Iterator[str]:
        before = row[name]
        yield from ("", "x")
        if before:
            yield from (f"{before} ", before.swapcase(), before[:-1], f"{before}x")
            middle = len(before) // 2
            yield f"{before[:middle]}{'1' if before[middle] == '0' else '0'}{before[middle + 1 :]}"
            if before[:1] == "{":
                also = '"more":1}' if before == "{}" else ',"more":1}'
                yield from ("{}", before[:-1] + also, before.replace(":", ": ", 1))
        yield from WORDS.get((self._table, name), ())

    def _bytes(self, row: dict[str, Any], name: str) -> Iterator[bytes]:
        before = row[name]
        yield from (b"", b"x" * 32)
        if before:
            yield before[:-1] + bytes([before[-1] ^ 0x80])
