"""The lines of new events, in pieces of bounded size; every event is hashed once and chained to the last.

A piece is small enough to stay in the processor's caches on its way to the file. A whole batch in one piece
costs twice the time, most of it for memory that is touched once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from tallystick.errors import BadInput
from tallystick.log.event import PAYLOAD_BYTES_MAX, TYPE, Draft, payload_bytes

PIECE_CHARACTERS: Final = 1 << 17


class LineMaker:
    """Turns the drafts of one run into lines; `last_hash` is the hash of the last line it made."""

    __slots__ = ("_frame", "_run_id", "_trace_id", "last_hash")

    def __init__(self, run_id: str, trace_id: str) -> None:
        """Make lines that name this run and this trace."""
        self._run_id = run_id
        self._trace_id = trace_id
        self._frame: _Frame | None = None
        self.last_hash = ""

    def pieces(
        self,
        drafts: Sequence[Draft],
        payloads: Sequence[str],
        event_ids: Sequence[str],
        ts: str,
        prev_hash: str,
    ) -> Iterator[bytes]:
        """Yield the lines of the drafts, whole lines only, some hundred a piece, from `prev_hash` on."""
        sha256, frame = hashlib.sha256, self._frame
        lines: list[str] = []
        size = 0
        for draft, payload, event_id in zip(drafts, payloads, event_ids, strict=True):
            if frame is None or not frame.fits(draft):
                frame = self._frame = _Frame(draft, self._run_id, self._trace_id)
            own_hash = sha256(f"{event_id}{ts}{frame.kind}{payload}{prev_hash}".encode()).hexdigest()
            line = (
                f'{{"event_hash":"{own_hash}","event_id":"{event_id}{frame.middle}{payload}'
                f',"prev_hash":"{prev_hash}{frame.place}{ts}{frame.end}'
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


def payload_texts(drafts: Sequence[Draft]) -> list[str]:
    """Return the canonical payloads of drafts, or raise BadInput for the first that cannot be one.

    After this nothing about the drafts can be refused any more, so a batch is written whole or not at all.
    """
    texts: list[str] = []
    for draft in drafts:
        _check_type(draft.type)
        payload = payload_bytes(draft.payload)
        if len(payload) > PAYLOAD_BYTES_MAX:
            size = f"{len(payload)} bytes, and {PAYLOAD_BYTES_MAX} are allowed"
            raise BadInput(f"the payload of a {draft.type} event has {size}; write an artifact instead")
        texts.append(payload.decode())
    return texts


@lru_cache(maxsize=256)
def _check_type(kind: str) -> None:
    if not TYPE.fullmatch(kind):
        raise BadInput(f"{kind[:80]!r} cannot be the type of an event: use capital letters and underscores")


class _Frame:
    """The parts of a line that one event shares with the next of its kind; a batch makes few of these."""

    __slots__ = ("_parent_span_id", "_span_id", "end", "kind", "middle", "place")

    def __init__(self, draft: Draft, run_id: str, trace_id: str) -> None:
        kind, span_id, parent = draft.type, draft.span_id, draft.parent_span_id
        optional = f'"parent_span_id":"{parent}",' if parent else ""
        self._span_id = span_id
        self._parent_span_id = parent
        self.kind = kind
        self.middle = f'",{optional}"payload":'
        self.place = f'","run_id":"{run_id}","span_id":"{span_id}","trace_id":"{trace_id}","ts":"'
        self.end = f'","type":"{kind}"}}\n'

    def fits(self, draft: Draft) -> bool:
        """Return whether the line of another draft has the same frame."""
        return (
            draft.type == self.kind
            and draft.span_id == self._span_id
            and draft.parent_span_id == self._parent_span_id
        )
