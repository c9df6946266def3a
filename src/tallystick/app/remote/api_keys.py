"""Making API keys, and finding the key of a request."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.remote.keys import ApiKey, hashed, new_key, split_key
from tallystick.engine.committer import Committer
from tallystick.errors import InvariantBroken
from tallystick.ids import Ids
from tallystick.store.api import Store


def make_key(
    committer: Committer,
    ids: Ids,
    tenant_id: str,
    scopes: Sequence[str],
    services: Sequence[str],
    lives_ms: int | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; return what is kept of it, and the text that opens it, which is nowhere else."""
    kid, secret = _drawn(ids)
    made = committer.call((new_key(kid, secret, tenant_id, scopes, services, lives_ms),))
    if not isinstance(made, ApiKey):
        raise InvariantBroken(f"a key was answered with {made!r}")
    return made, f"{kid}.{secret}"


class Keyring:
    """The keys that open this process: those of the store, and one that lives as long as the process."""

    def __init__(self, store: Store) -> None:
        """Begin with the keys of the store alone."""
        self._store = store
        self._own: ApiKey | None = None

    def make_own(self, ids: Ids, tenant_id: str, scopes: Sequence[str], services: Sequence[str]) -> str:
        """Make a key that is kept nowhere, and return its text."""
        kid, secret = _drawn(ids)
        wish = new_key(kid, secret, tenant_id, scopes, services, None)
        self._own = ApiKey(kid, tenant_id, wish.scopes, wish.services, hashed(secret), self._store.now())
        return f"{kid}.{secret}"

    def opened_by(self, text: str) -> ApiKey | None:
        """Return the live key that this text opens."""
        parts = split_key(text)
        if parts is None:
            return None
        kid, secret = parts
        own = self._own
        found = own if own is not None and own.kid == kid else self._store.key(kid)
        opens = found is not None and found.is_opened_by(secret) and found.is_live(self._store.now())
        return found if opens else None


def _drawn(ids: Ids) -> tuple[str, str]:
    return ids.token()[:12], f"{ids.token()}{ids.token()}"
