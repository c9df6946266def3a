"""Where a directive goes: decided once, when its attempt is made, and kept in its rows."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from tallystick.core.remote.policy import Policy
from tallystick.errors import BadCommand

BURST = "BURST"


class Route(NamedTuple):
    """The routing columns of specification 001."""

    resolved_mode: str
    lane: str
    routing_key_used: str
    decision_source: str
    decision_reason: str


def route(tenant_id: str, doc_id: str | None, requested: str | None, policy: Policy) -> Route:
    """Decide mode, key and lane of an attempt.

    >>> route(" Acme ", None, None, Policy())[:3]
    ('DEFAULT', '14', 'acme')
    >>> route("acme", "Doc-7", "BURST", Policy())[:3]
    ('BURST', '11', 'acme:doc-7')
    """
    if requested is not None:
        mode, source, reason = requested, "request", "the command names its mode"
    elif policy.tenant_mode is not None:
        mode, source, reason = policy.tenant_mode, "tenant", "the configuration of the tenant"
    else:
        mode, source, reason = str(policy.mode), "global", "the configuration of all tenants"
    key = tenant_id.strip().lower()
    if mode == BURST:
        if not (doc_id or "").strip():
            raise BadCommand(
                "a command in BURST mode needs a doc_id: it is a part of the routing key", path="doc_id"
            )
        key = f"{key}:{(doc_id or '').strip().lower()}"
    return Route(mode, str(crc32(key.encode()) % policy.lanes), key, source, reason)


def topic(prefix: str, lane: str) -> str:
    """Return the name of the topic that a lane has.

    >>> topic("ocr", "7")
    'ocr-p7'
    """
    return f"{prefix}-p{lane}"
