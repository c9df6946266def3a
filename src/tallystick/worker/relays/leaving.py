"""Adds what is never stored to a directive when it is sent: its token and the address for reports."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tallystick.core.lease import WORK_LEASE_MS
from tallystick.core.remote.policy import budget_ms
from tallystick.core.remote.requests import StepFence
from tallystick.core.remote.rows import OutboxRow
from tallystick.core.remote.tokens import CallbackKeys
from tallystick.remote.publishers.endpoint import REPORTS


class Leaving:
    """Completes directives for the endpoints of one installation."""

    def __init__(self, keys: CallbackKeys, callback_url: str | None) -> None:
        """Remember the secrets and where the HTTP API is, if there is one."""
        self._keys = keys
        base = None if callback_url is None else callback_url.rstrip("/")
        self._urls = {} if base is None else {kind: f"{base}/v1/callbacks/{kind}" for kind in REPORTS}

    def body(self, row: OutboxRow, replies: Mapping[str, str]) -> bytes:
        """Return the JSON of a directive as its service gets it."""
        said: dict[str, object] = msgspec.json.decode(row.payload)
        lease_ms = said.get("lease_ms", WORK_LEASE_MS)
        assert isinstance(lease_ms, int), "we wrote it"
        ends_at = row.created_at + budget_ms(1) + lease_ms
        fence = StepFence(row.job_id, row.step_id, row.attempt_no, row.lease_id)
        said["token"] = self._keys.token(row.tenant_id, fence, max(ends_at, row.next_try_at + lease_ms))
        if urls := {**self._urls, **replies}:
            said["callback_urls"] = urls
        return msgspec.json.encode(said)
