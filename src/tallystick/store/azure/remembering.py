"""What a process remembers, so that it need not ask the service: each thing for a while, and not too many."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey
from tallystick.errors import BadInput
from tallystick.store.azure import keys
from tallystick.store.azure.entities import packed, read_as
from tallystick.store.azure.requests import Asking, Find, Put, ServiceRefusal, find, get, write

V = TypeVar("V")

COUNT_SECONDS: Final = 10.0
"""For how long the jobs of a tenant are not counted again, while there are fewer than it may have."""

KEY_SECONDS: Final = 10.0
"""For how long an API key is not read again: one that was revoked elsewhere opens this process as long."""

_KEYS_MAX: Final = 1_000
_ROW: Final = "key"

_FULL_SECONDS: Final = 1.0
_TENANTS_MAX: Final = 1_000


class Remembered(Generic[V]):
    """Values by their names, for so many seconds, the newest `names_max` of them; from any thread."""

    def __init__(self, monotonic: Callable[[], float], names_max: int, seconds: float) -> None:
        """Begin without any."""
        self._monotonic = monotonic
        self._names_max = names_max
        self._seconds = seconds
        self._kept: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, name: str, value: V) -> None:
        """Remember a value."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = (self._monotonic() + self._seconds, value)
            if len(self._kept) > self._names_max:
                self._kept.popitem(last=False)

    def get(self, name: str) -> V | None:
        """Return a value that is not too old."""
        with self._lock:
            return self._good(self._kept.get(name))

    def forget(self, name: str) -> V | None:
        """Return a value that is not too old, and remember it no longer."""
        with self._lock:
            return self._good(self._kept.pop(name, None))

    def _good(self, found: tuple[float, V] | None) -> V | None:
        return found[1] if found is not None and self._monotonic() < found[0] else None


class OpenJobs:
    """About how many jobs of a tenant have not ended: counted now and then, and by what changes here.

    Below its limit a count is good for ten seconds, so processes side by side may let in as many as the limit
    each. At the limit it is counted once per second.
    """

    def __init__(self, monotonic: Callable[[], float], counted: Callable[[str, int], int]) -> None:
        """Count by asking the service."""
        self._monotonic = monotonic
        self._counted = counted
        self._known: Remembered[_TenantCount] = Remembered(monotonic, _TENANTS_MAX, COUNT_SECONDS)
        # What is made while the service counts is added: it may be missing there.
        self._asked: list[_TenantCount] = []
        self._lock = threading.Lock()

    def count(self, tenant_id: str, limit: int) -> int:
        """Return how many there are, up to a limit."""
        known, now = self._known.get(tenant_id), self._monotonic()
        if known is None or known.limit < limit or (known.count >= limit and known.full_until <= now):
            known = _TenantCount(tenant_id, limit, now + _FULL_SECONDS)
            self._asked.append(known)
            try:
                found = self._counted(tenant_id, limit)
            finally:
                self._asked.remove(known)
            known.count += found
            self._known.keep(tenant_id, known)
        return min(limit, known.count)

    def add(self, tenant_id: str, more: int) -> None:
        """Count jobs that were made here, or have ended here."""
        known = self._known.get(tenant_id)
        with self._lock:
            for each in (*self._asked, *(() if known is None else (known,))):
                each.count += more if each.tenant_id == tenant_id else 0


class _TenantCount:
    """What is known of one tenant."""

    __slots__ = ("count", "full_until", "limit", "tenant_id")

    def __init__(self, tenant_id: str, limit: int, full_until: float) -> None:
        self.tenant_id = tenant_id
        self.count = 0
        self.limit = limit
        self.full_until = full_until


class ApiKeys:
    """The keys of a store, as one process knows them."""

    def __init__(self, monotonic: Callable[[], float], now: Callable[[], int]) -> None:
        """Begin without any."""
        self._known: Remembered[ApiKey] = Remembered(monotonic, _KEYS_MAX, KEY_SECONDS)
        self._now = now

    def change(self, request: AddKey | RevokeKey) -> Asking[ApiKey | bool]:
        """Add a key, or revoke one."""
        if isinstance(request, RevokeKey):
            return (yield from self._revoke(request.kid))
        kid, tenant_id, scopes, services, secret_hash, lives_ms = request
        now = self._now()
        over = None if lives_ms is None else now + lives_ms
        made = ApiKey(kid, tenant_id, scopes, services, secret_hash, now, over)
        reply = yield from write(Put(keys.KEYS, keys.encoded(kid), _ROW, packed(made._asdict())))
        if isinstance(reply, ServiceRefusal):
            raise BadInput(f"there is a key {kid} already", kid=kid)
        return made

    def _revoke(self, kid: str) -> Asking[bool]:
        row = yield from get(keys.KEYS, keys.encoded(kid), _ROW)
        while row is not None and row.values.get("revoked_at") is None:
            revoked = {**row.values, "revoked_at": self._now()}
            yield from write(Put(keys.KEYS, row.pk, row.rk, revoked, row.etag))
            row = yield from get(keys.KEYS, row.pk, row.rk)
        self._known.forget(kid)
        return row is not None

    def one(self, kid: str) -> Asking[ApiKey | None]:
        """Return a key by its name, whether it still works or not, as it was some seconds ago."""
        found = self._known.get(kid)
        if found is None:
            row = yield from get(keys.KEYS, keys.encoded(kid), _ROW)
            if row is None:
                return None
            found = read_as(ApiKey, row.values)
            self._known.keep(kid, found)
        return found


def every_key() -> Asking[list[ApiKey]]:
    """Return every key."""
    return [read_as(ApiKey, row.values) for row in (yield from find(Find(keys.KEYS, "", pk_below=keys.JOIN)))]
