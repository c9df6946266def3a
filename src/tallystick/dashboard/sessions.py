"""Who is logged in: sessions of browsers, each with the rights of one key, and links that open one once.

A session is a random identifier in a cookie; its hash alone is kept here, in the process that serves. It ends
after twelve hours, when its key opens nothing any more, and with the process.
"""

from __future__ import annotations

import hmac
from collections import deque
from hashlib import sha256
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from tallystick.app.remote.api_keys import Keyring
from tallystick.clock import Clock
from tallystick.core.remote.keys import ADMIN, ALL_TENANTS, ApiKey
from tallystick.defaults import TENANT
from tallystick.engine.audit import Audit
from tallystick.errors import TooManyLogins
from tallystick.ids import Ids

SESSION_SECONDS: Final = 12 * 3600
LINK_SECONDS: Final = 3600
FAILURES_MAX: Final = 10
"""How many wrong keys and links of one address are answered in a minute; a right one always opens."""
_MINUTE: Final = 60.0
_SESSIONS_MAX: Final = 10_000
_ADDRESSES_MAX: Final = 10_000


class BooksChecked(NamedTuple):
    """What a check of books has found that the browser asked for: of one job, or of the newest ones."""

    job_id: str | None
    at: int
    audit: Audit


class Session(msgspec.Struct):
    """One browser: whose key it has, and until when."""

    kid: str
    csrf: str
    until: float
    # Which tenant an operator looks at; that of the key, if it has one.
    tenant: str
    # What was done last, for the next page to say.
    said: str = ""
    # The books that were checked last: a page that is shown again does not check them again.
    checked: BooksChecked | None = None


class Sessions:
    """The sessions of one process; safe in any thread."""

    def __init__(self, keyring: Keyring, ids: Ids, clock: Clock) -> None:
        """Begin without a session."""
        self._keyring, self._ids, self._clock = keyring, ids, clock
        self._sessions: dict[str, Session] = {}
        self._links: dict[str, tuple[str, float]] = {}
        self._failures: dict[str, deque[float]] = {}
        self._lock = Lock()

    def link(self, kid: str) -> str:
        """Return the secret of a link that opens a session of this key, once and within an hour."""
        secret = self._secret()
        with self._lock:
            self._links[_hashed(secret)] = (kid, self._clock.monotonic() + LINK_SECONDS)
        return secret

    def by_link(self, secret: str, address: str) -> str | None:
        """Use up a link and return the identifier of a new session; None if there is no such link."""
        with self._lock:
            kid, until = self._links.pop(_hashed(secret), ("", 0.0))
        key = self._keyring.live(kid) if self._clock.monotonic() < until else None
        return self._begun(key, address)

    def by_key(self, text: str, address: str) -> str | None:
        """Return the identifier of a new session for the key that this text opens; None if it opens none."""
        return self._begun(self._keyring.opened_by(text), address)

    def find(self, identifier: str) -> tuple[Session, ApiKey] | None:
        """Return a session that goes on, with its key as it is now."""
        name = _hashed(identifier)
        session = self._sessions.get(name)
        if session is None:
            return None
        key = self._keyring.live(session.kid) if self._clock.monotonic() < session.until else None
        if key is None:
            self.end(identifier)
            return None
        return session, key

    def end(self, identifier: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_hashed(identifier), None)

    def _begun(self, key: ApiKey | None, address: str) -> str | None:
        """Begin a session of a key. Without one a wrong key came, and too many of them are refused.

        A key has 256 bits and is not guessed: that others behind the same proxy send wrong ones keeps no
        right one out.
        """
        now = self._clock.monotonic()
        with self._lock:
            if key is None:
                self._note_failure(address, now)
                return None
            identifier = self._secret()
            tenant = TENANT if key.tenant_id == ALL_TENANTS else key.tenant_id
            self._forget(now)
            self._sessions[_hashed(identifier)] = Session(
                key.kid, self._secret(), now + SESSION_SECONDS, tenant
            )
        return identifier

    def _note_failure(self, address: str, now: float) -> None:
        failures = self._failures.pop(address, deque(maxlen=FAILURES_MAX))
        while failures and failures[0] < now - _MINUTE:
            failures.popleft()
        is_many = len(failures) == FAILURES_MAX
        failures.append(now)
        # The address that was heard of last comes last: those in front are forgotten.
        self._failures[address] = failures
        while len(self._failures) > _ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        if is_many:
            raise TooManyLogins(
                "too many wrong keys came from this address; wait a minute, or log in with a right one"
            )

    def _forget(self, now: float) -> None:
        for name in [name for name, session in self._sessions.items() if session.until <= now]:
            del self._sessions[name]
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]

    def _secret(self) -> str:
        return f"{self._ids.token()}{self._ids.token()}"


def is_same(secret: str, given: str) -> bool:
    """Tell whether two secrets are the same, taking as long for any answer."""
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "replace"))


def is_operator(key: ApiKey) -> bool:
    """Tell whether a key is for pages about the whole store."""
    return key.allows(ADMIN)


def _hashed(secret: str) -> str:
    return sha256(f"tallystick/session/v1\0{secret}".encode("utf-8", "replace")).hexdigest()
