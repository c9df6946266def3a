"""API keys on SQL stores: made, looked up by name, revoked; never changed otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey
from tallystick.errors import BadInput
from tallystick.store.api import Outcome
from tallystick.store.writing import OpenTransaction

KeyRequest: TypeAlias = AddKey | RevokeKey


def keep_keys(batch: OpenTransaction, requests: Sequence[KeyRequest]) -> list[Outcome]:
    """Write what was asked of keys, one after the other."""
    return [_kept(batch, request) for request in requests]


def keep_keys_then(batch: OpenTransaction, requests: Sequence[KeyRequest]) -> Callable[[], list[Outcome]]:
    """Do the same where answers are read later."""
    outcomes = keep_keys(batch, requests)
    return lambda: outcomes


def _kept(batch: OpenTransaction, request: KeyRequest) -> ApiKey | bool:
    if isinstance(request, RevokeKey):
        batch.run("revoke_key", (request.kid, batch.wall))
        return bool(batch.rows("key", (request.kid,)))
    taken = BadInput(f"there is a key {request.kid} already", kid=request.kid)
    batch.expect("insert_key", (*request, batch.wall), taken)
    (row,) = batch.rows("key", (request.kid,))
    return ApiKey._make(row)
