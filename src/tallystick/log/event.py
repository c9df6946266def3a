"""One event and its line: a compact JSON object whose hash covers its content and its predecessor.

The line is canonical (sorted keys, shortest form), and the payload inside it is canonical too. A reader can
therefore check the hash over bytes it already has, without encoding anything again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from tallystick.core.chain import link_hash
from tallystick.core.json_forms.canonical import canonical
from tallystick.errors import BadInput

PAYLOAD_BYTES_MAX: Final = 1 << 20
LINE_BYTES_MAX: Final = PAYLOAD_BYTES_MAX + 4096
TYPE: Final = re.compile(r"[A-Z][A-Z_]{0,63}", re.ASCII)


class LogEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A fact, as it stands in the log."""

    event_id: str
    run_id: str
    ts: str
    type: str
    payload: msgspec.Raw
    trace_id: str
    span_id: str
    event_hash: str
    prev_hash: str
    parent_span_id: str = ""


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A fact on its way into the log; the log adds identity, time and place in the chain.

    A payload that is a Struct must declare only texts, integers, truth values, lists and Structs of these; a
    mapping may hold any JSON value.
    """

    type: str
    payload: msgspec.Struct | dict[str, Any]
    span_id: str
    parent_span_id: str = ""


# What a decoder raises for bytes that are not what they should be.
NOT_DECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_encoder: Final = msgspec.json.Encoder(order="sorted")


def payload_bytes(payload: msgspec.Struct | dict[str, Any]) -> bytes:
    """Return the canonical bytes of a payload.

    Sorted msgspec output of texts, integers and truth values is canonical already; mappings take the long
    way.
    """
    if isinstance(payload, msgspec.Struct):
        try:
            return _encoder.encode(payload)
        except UnicodeEncodeError as error:
            raise BadInput("a text holds half of a surrogate pair and has no UTF-8 form") from error
    return canonical(payload)


def event_hash(event_id: str, ts: str, kind: str, payload: bytes | msgspec.Raw, prev_hash: str) -> str:
    """Return the hash of an event: SHA-256 of id, time, type, canonical payload and the hash before it.

    >>> event_hash("e-1", "2026-01-02T03:04:05.006Z", "NOTED", b"{}", "")[:16]
    '9b7ebbfb55cbeace'
    """
    return link_hash(f"{event_id}{ts}{kind}".encode() + payload, prev_hash.encode()).hex()


def utc_text(wall_ms: int) -> str:
    """Return an instant as text with milliseconds.

    >>> utc_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    return f"{_second_text(wall_ms // 1000)}.{wall_ms % 1000:03d}Z"


@lru_cache(maxsize=4)
def _second_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
