"""The lines of new events, in pieces of bounded size; every event is hashed once and chained to the last.

A piece is small enough to stay in the processor's caches on its way to the file. A whole batch in one piece
costs twice the time, most of it for memory that is touched once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from tallystick.errors import BadInput
from tallystick.log.event import PAYLOAD_BYTES_MAX, TYPE, Draft, event_hash, payload_bytes

PIECE_CHARACTERS: Final = 1 << 17


class LineMaker:
    """Turns the drafts of one run into lines; `last_hash` is the hash of the last line it made."""

    __slots__ = ("_run_id", "_trace_id", "last_hash")

    def __init__(self, run_id: str, trace_id: str) -> None:
        """Make lines that name this run and this trace."""
        self._run_id = run_id
        self._trace_id = trace_id
        self.last_hash = ""

    def pieces(
        self,
        drafts: Sequence[Draft],
        payloads: Sequence[str],
        event_ids: Sequence[str],
        ts: str,
        prev_hash: str,
    ) -> Iterator[bytes]:
        """Yield the lines of the drafts, whole lines only, some hundred per piece, from `prev_hash` on."""
        kind = span_id = parent_span_id = middle = end = ""
        lines: list[str] = []
        size = 0
        for draft, payload, event_id in zip(drafts, payloads, event_ids, strict=True):
            # Most events of a batch share these with the one before, and then also this part of the line.
            if draft.type != kind or draft.span_id != span_id or draft.parent_span_id != parent_span_id:
                kind, span_id, parent_span_id = draft.type, draft.span_id, draft.parent_span_id
                middle, end = self._frame(kind, span_id, parent_span_id, ts)
            own_hash = event_hash(event_id, ts, kind, payload.encode(), prev_hash)
            line = (
                f'{{"event_hash":"{own_hash}","event_id":"{event_id}{middle}{payload}'
                f',"prev_hash":"{prev_hash}{end}'
            )
            lines.append(line)
            prev_hash = own_hash
            size += len(line)
            if size >= PIECE_CHARACTERS:
                yield "".join(lines).encode()
                lines.clear()
                size = 0
        self.last_hash = prev_hash
        if lines:
            yield "".join(lines).encode()

    def _frame(self, kind: str, span_id: str, parent_span_id: str, ts: str) -> tuple[str, str]:
        """Return what stands in a line between event id and payload, and what follows the hash before it."""
        optional = f'"parent_span_id":"{parent_span_id}",' if parent_span_id else ""
        place = f'"run_id":"{self._run_id}","span_id":"{span_id}","trace_id":"{self._trace_id}"'
        return f'",{optional}"payload":', f'",{place},"ts":"{ts}","type":"{kind}"}}\n'


def payload_texts(drafts: Sequence[Draft]) -> list[str]:
    """Return the canonical payloads of drafts, or raise BadInput for the first that cannot be one.

    After this nothing about the drafts can be refused any more, so a batch is written whole or not at all.
    """
    texts: list[str] = []
    kind: str | None = None
    for draft in drafts:
        if draft.type != kind:
            kind = draft.type
            _check_type(kind)
        payload = payload_bytes(draft.payload)
        if len(payload) > PAYLOAD_BYTES_MAX:
            size = f"{len(payload)} bytes, and {PAYLOAD_BYTES_MAX} are allowed"
            raise BadInput(f"the payload of a {kind} event has {size}; write an artifact instead")
        texts.append(payload.decode())
    return texts


@lru_cache(maxsize=256)
def _check_type(kind: str) -> None:
    if not TYPE.fullmatch(kind):
        raise BadInput(f"{kind[:80]!r} cannot be the type of an event: use capital letters and underscores")
