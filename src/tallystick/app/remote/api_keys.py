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
    """The keys that open this process: those of the store, and a few that live as long as the process."""

    def __init__(self, store: Store) -> None:
        """Begin with the keys of the store alone."""
        self._store = store
        self._own: dict[str, ApiKey] = {}

    def make_own(self, ids: Ids, tenant_id: str, scopes: Sequence[str], services: Sequence[str]) -> str:
        """Make a key that is kept nowhere, and return its text."""
        kid, secret = _drawn(ids)
        wish = new_key(kid, secret, tenant_id, scopes, services, None)
        self._own[kid] = ApiKey(kid, tenant_id, wish.scopes, wish.services, hashed(secret), self._store.now())
        return f"{kid}.{secret}"

    def opened_by(self, text: str) -> ApiKey | None:
        """Return the live key that this text opens."""
        parts = split_key(text)
        if parts is None:
            return None
        kid, secret = parts
        found = self.live(kid)
        return found if found is not None and found.is_opened_by(secret) else None

    def live(self, kid: str) -> ApiKey | None:
        """Return the key of that name, if it can be used now."""
        found = self._own.get(kid) or self._store.key(kid)
        return found if found is not None and found.is_live(self._store.now()) else None


def _drawn(ids: Ids) -> tuple[str, str]:
    return ids.token()[:12], f"{ids.token()}{ids.token()}"
