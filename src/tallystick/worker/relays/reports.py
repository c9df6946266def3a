"""Reports that come back over brokers: the same token, the same requests, the same answers as over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from tallystick.clock import Clock
from tallystick.core.limits import JSON_KEYS_MAX
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.reports import (
    REFUSED,
    REPORT_BYTES_MAX,
    ReportAnswer,
    named_fence,
    read_report,
    told,
)
from tallystick.core.remote.tokens import CallbackKeys
from tallystick.engine.committer import Committer
from tallystick.errors import InvariantBroken, StoreError, TallyError
from tallystick.ids import Ids
from tallystick.remote.publishers.endpoint import Published

if TYPE_CHECKING:
    from tallystick.worker.relays.relay import Relay


class Reports:
    """Takes reports of remote workers to the books, and says what became of each."""

    def __init__(self, committer: Committer, clock: Clock, ids: Ids, keys: CallbackKeys) -> None:
        """Remember what to ask."""
        self._committer = committer
        self._clock = clock
        self._ids = ids
        self._keys = keys

    async def answer(self, report: Published, relay: Relay) -> bytes:
        """Return the answer to a report once that is durable; raise what says that it should come again."""
        try:
            heard = await self._heard(report, relay)
        except StoreError:
            raise
        except TallyError as error:
            return msgspec.json.encode({"status": error.http_status, **error.as_dict()})
        return msgspec.json.encode(heard.members())

    async def _heard(self, report: Published, relay: Relay) -> ReportAnswer:
        now = self._clock.wall_ms()
        if not self._keys.is_live(report.token, now):
            return REFUSED
        try:
            request = read_report(
                report.kind, report.body, self._ids.token(), relays=relay.eager, keys_max=JSON_KEYS_MAX
            )
        except TallyError:
            # What is wrong with a report is said to the bearer of its token alone.
            named = named_fence(report.body[:REPORT_BYTES_MAX])
            if named is None or self._keys.tenant(report.token, named, now) is None:
                return REFUSED
            raise
        tenant_id = self._keys.tenant(report.token, request.fence, now)
        if tenant_id is None:
            return REFUSED
        outcome = await self._committer.lane(asyncio.get_running_loop()).call((request,))
        if not isinstance(outcome, Hearing):
            raise InvariantBroken(f"a report was answered with {outcome!r}")
        relay.offer(outcome)
        return told(
            request,
            outcome,
            lambda ends: (
                max(0, ends - self._clock.wall_ms()),
                self._keys.token(tenant_id, request.fence, ends),
            ),
        )
