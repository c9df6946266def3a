"""API keys: what a client may do over HTTP, and for which tenant.

A key is `kid.secret`. The secret has 256 bits of chance and is kept as its hash alone. The tenant is a
property of the key, so no request can name another.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from tallystick.core.limits import check_name
from tallystick.errors import BadInput, TallyError

READ: Final = "jobs:read"
WRITE: Final = "jobs:write"
WORK: Final = "work"
ADMIN: Final = "admin"
SCOPES: Final = (READ, WRITE, WORK, ADMIN)
ALL_TENANTS: Final = "*"
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class ApiKey(NamedTuple):
    """One key as it is kept; scopes and services are JSON lists."""

    kid: str
    tenant_id: str
    scopes: str
    services: str
    secret_hash: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def allows(self, scope: str) -> bool:
        """Tell whether the key is for this."""
        return scope in listed(self.scopes)

    def is_live(self, now: int) -> bool:
        """Tell whether the key can be used at this instant."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def is_opened_by(self, secret: str) -> bool:
        """Tell whether this is the secret of the key, taking as long for any answer."""
        return hmac.compare_digest(self.secret_hash, hashed(secret))


class AddKey(NamedTuple):
    """Keep a key that works for so many ms from now, or until it is revoked; the outcome is the key."""

    kid: str
    tenant_id: str
    scopes: str
    services: str
    secret_hash: str
    lives_ms: int | None


class RevokeKey(NamedTuple):
    """Let a key open nothing any more; the outcome tells whether there is such a key."""

    kid: str


def new_key(
    kid: str,
    secret: str,
    tenant_id: str,
    scopes: Sequence[str],
    services: Sequence[str],
    lives_ms: int | None,
) -> AddKey:
    """Return the wish for a key, or say what is wrong with it.

    >>> new_key("k1", "s", "acme", ["work"], [], None)
    Traceback (most recent call last):
    tallystick.errors.BadInput: a key with the scope work names its services: --service ocr
    """
    check_key(tenant_id, scopes, services)
    if lives_ms is not None and lives_ms <= 0:
        raise BadInput("a key that is over at once opens nothing; give it more time")
    return AddKey(kid, tenant_id, written(scopes), written(services), hashed(secret), lives_ms)


def check_key(tenant_id: str, scopes: Sequence[str], services: Sequence[str]) -> None:
    """Refuse what no key can be for."""
    for scope in scopes:
        if scope not in SCOPES:
            raise BadInput(f"{scope!r} is not a scope; the scopes are {', '.join(SCOPES)}", scope=scope)
    if not scopes:
        raise BadInput(f"a key needs a scope; those are {', '.join(SCOPES)}")
    if WORK in scopes and not services:
        raise BadInput("a key with the scope work names its services: --service ocr")
    if services and WORK not in scopes:
        raise BadInput("services are for keys with the scope work: add --scope work")
    if tenant_id != ALL_TENANTS:
        check_name("tenant", tenant_id)
    elif set(scopes) != {WORK} and ADMIN not in scopes:
        raise BadInput("a key for all tenants is for the scope work alone, or for admin; name the tenant")
    for service in services:
        check_name("service", service)


def judge_key(row: ApiKey) -> Iterator[str]:
    """Give what no key can be: what `tally keys create` would refuse, and times in a wrong order.

    >>> list(judge_key(ApiKey("k1", "acme", '["jobs:read"]', "[]", "0" * 64, 5, 9, 4)))
    ['it was revoked before it was made']
    """
    try:
        scopes, services = listed(row.scopes), listed(row.services)
        check_key(row.tenant_id, scopes, services)
    except (msgspec.MsgspecError, TallyError) as error:
        yield f"it is for what no key is for: {error}"
        return
    if (written(scopes), written(services)) != (row.scopes, row.services):
        yield "its scopes and services are not as they were written"
    if not _HASH.fullmatch(row.secret_hash):
        yield "its secret is not kept as a hash"
    if row.expires_at is not None and row.expires_at <= row.created_at:
        yield "it was over before it was made"
    if row.revoked_at is not None and row.revoked_at < row.created_at:
        yield "it was revoked before it was made"


def split_key(text: str) -> tuple[str, str] | None:
    """Return name and secret of a key as it is sent, if it has that form.

    >>> split_key("k1.secret"), split_key("secret")
    (('k1', 'secret'), None)
    """
    kid, mark, secret = text.partition(".")
    return (kid, secret) if mark and kid and secret and len(text) <= _CHARS_MAX and text.isascii() else None


_CHARS_MAX: Final = 256


def hashed(secret: str) -> str:
    """Return what is kept of a secret; it is too random to be found by trying."""
    return sha256(f"tallystick/key/v1\0{secret}".encode()).hexdigest()


def listed(text: str) -> tuple[str, ...]:
    """Return the words of a list as it is kept."""
    return msgspec.json.decode(text, type=tuple[str, ...])


def written(words: Sequence[str]) -> str:
    """Return a list of words as it is kept."""
    return msgspec.json.encode(sorted(set(words))).decode()
