"""Capability tokens: the owner of a directive may report on that attempt, and on nothing else.

A token is `kid.exp.tenant.mac`. The code signs tenant, job, step, attempt and lease, so a token is worth
nothing for another attempt, and it is checked before any store is asked. Tokens are made when a directive is
published or delivered and are never stored.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final, NamedTuple

from tallystick.core.remote.requests import StepFence
from tallystick.errors import BadCallbackKeys

SECRET_CHARS_MIN: Final = 32
TOKEN_CHARS_MAX: Final = 512
TOKEN_GRACE_MS: Final = 86_400_000
"""How long after its lease a token is still read: a late report gets its answer, and changes nothing."""

_PURPOSE: Final = "cb/v1"
_KID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TOKEN: Final = re.compile(
    r"(?P<kid>[A-Za-z0-9_-]{1,32})\.(?P<exp>[0-9]{1,15})\.(?P<tenant>[A-Za-z0-9_-]+)\.(?P<mac>[A-Za-z0-9_-]{43})"
)


class CallbackKey(NamedTuple):
    """A secret that signs tokens, and the name by which a token says which it was."""

    kid: str
    secret: str

    def __repr__(self) -> str:
        """Show the name alone: what is printed may end in a log."""
        return f"CallbackKey({self.kid!r})"


class _Claims(NamedTuple):
    """What a token says, before it is proven."""

    secret: str
    tenant_id: str
    expires_at: int
    mac: str


class CallbackKeys(NamedTuple):
    """The secrets of this installation, the newest first: it signs, all of them are accepted."""

    keys: tuple[CallbackKey, ...]

    def token(self, tenant_id: str, fence: StepFence, lease_expires_at: int) -> str:
        """Return the token of a directive whose lease ends at this instant.

        >>> keys = read_callback_keys("k1:" + "s" * 32)
        >>> token = keys.token("acme", StepFence("j1", "ocr", 1, "l1"), 5)
        >>> keys.tenant(token, StepFence("j1", "ocr", 1, "l1"), 4)
        'acme'
        >>> keys.tenant(token, StepFence("j1", "ocr", 2, "l1"), 4) is None
        True
        """
        newest, expires_at = self.keys[0], lease_expires_at + TOKEN_GRACE_MS
        told = urlsafe_b64encode(tenant_id.encode()).decode().rstrip("=")
        return f"{newest.kid}.{expires_at}.{told}.{_mac(newest.secret, tenant_id, fence, expires_at)}"

    def tenant(self, token: str, fence: StepFence, now: int) -> str | None:
        """Return the tenant that a token speaks for, if it was made for this attempt and is not over."""
        said = self._said(token, now)
        if said is None:
            return None
        expected = _mac(said.secret, said.tenant_id, fence, said.expires_at)
        return said.tenant_id if hmac.compare_digest(expected, said.mac) else None

    def is_live(self, token: str, now: int) -> bool:
        """Tell whether a text has the form of a token of ours that is not over; nothing is proven by it."""
        return self._said(token, now) is not None

    def _said(self, token: str, now: int) -> _Claims | None:
        told = _TOKEN.fullmatch(token) if len(token) <= TOKEN_CHARS_MAX else None
        secret = next((each.secret for each in self.keys if told and each.kid == told["kid"]), None)
        if told is None or secret is None:
            return None
        tenant_id, expires_at = _decoded(told["tenant"]), int(told["exp"])
        if tenant_id is None or expires_at <= now:
            return None
        return _Claims(secret, tenant_id, expires_at, told["mac"])


def read_callback_keys(text: str) -> CallbackKeys:
    """Return the keys that a text lists as `kid:secret`, the newest first, apart by commas or lines.

    >>> read_callback_keys("new:" + "s" * 32 + ", old:" + "t" * 32).keys
    (CallbackKey('new'), CallbackKey('old'))
    """
    keys = []
    for part in re.split(r"[,\s]+", text.strip()):
        kid, _, secret = part.partition(":")
        if not _KID.fullmatch(kid) or len(secret) < SECRET_CHARS_MIN:
            raise BadCallbackKeys(
                "the keys for callbacks cannot be read: write KID:SECRET, the newest first, commas between; "
                f"a KID has letters, digits, - and _, a SECRET at least {SECRET_CHARS_MIN} characters"
            )
        keys.append(CallbackKey(kid, secret))
    if len({key.kid for key in keys}) < len(keys):
        raise BadCallbackKeys("two of the keys for callbacks have the same name; give each a name of its own")
    return CallbackKeys(tuple(keys))


def _mac(secret: str, tenant_id: str, fence: StepFence, expires_at: int) -> str:
    job_id, step_id, attempt_no, lease_id = fence
    fields = (_PURPOSE, tenant_id, job_id, step_id, str(attempt_no), lease_id, str(expires_at))
    signed = b"".join([len(each).to_bytes(4) + each for each in map(str.encode, fields)])
    return urlsafe_b64encode(hmac.digest(secret.encode(), signed, sha256)).decode().rstrip("=")


def _decoded(text: str) -> str | None:
    """Return the tenant as it was written; only the one spelling that we write is read."""
    try:
        tenant_id = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return None
    return tenant_id if urlsafe_b64encode(tenant_id.encode()).decode().rstrip("=") == text else None
