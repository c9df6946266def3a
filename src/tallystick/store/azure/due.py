"""Looking at jobs when it is time: each row that says so is followed to its job, and the job decides.

A row is a hint, never the reason: the job is read after it. What is behind is finished, a row without
a use is deleted, one that came too early is written again for later; what is left is due.

A row says who looks for it, so the relays to one endpoint read no row of another. The sweep looks at all of
them; one that it has to leave to relays it notes as looked at, and does not read again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tallystick.clock import Clock
from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.requests import DueStep
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.ids import SystemIds
from tallystick.store.azure import keys, reading
from tallystick.store.azure.changing import LOOK_MS, Here, rearm
from tallystick.store.azure.client import Carrier, asked_together
from tallystick.store.azure.entities import packed
from tallystick.store.azure.heads import ABANDONED, Seen, wake
from tallystick.store.azure.requests import (
    Asking,
    Condition,
    Drop,
    Find,
    Put,
    Row,
    ServiceRefusal,
    find,
    get,
    write,
)
from tallystick.store.azure.tail import finish, load

T = TypeVar("T")

_LOOKED_AT_MAX: Final = 64
"""How many jobs that may be due are read at the same time."""

_GIVEN_MAX: Final = 256
"""Among how many of the directives that a remote worker was given last it may be given some again."""

ABANDON_MS: Final = 600_000
"""After how long the sweep closes a submission that has no job."""


_ENDPOINTS_MAX: Final = 10
"""How many endpoints one request may leave out: the service takes 15 conditions."""

_ENDPOINT_CHARS_MAX: Final = 200
_PAGES_MAX: Final = 10


def for_sweep(now: int) -> tuple[Condition, ...]:
    """Return which rows the sweep reads: those that it has not left to relays a moment ago."""
    return (("look_at", "lt", keys.instant_text(now + 1)),)


def for_relays(via: str) -> tuple[Condition, ...]:
    """Return which rows the relays to an endpoint read."""
    return (("reader", "eq", keys.relay_to(via)),)


def for_strangers(known: Sequence[str]) -> tuple[Condition, ...]:
    """Return which rows are for relays to other endpoints than these; not more than a request may name."""
    named = [via for via in known if len(via) <= _ENDPOINT_CHARS_MAX][:_ENDPOINTS_MAX]
    others = tuple(("reader", "ne", keys.relay_to(via)) for via in named)
    return (("reader", "ge", keys.RELAYS), ("reader", "lt", keys.RELAYS_END), *others)


def come(
    partition: str, until: int, limit: int, where: tuple[Condition, ...], known: Sequence[str] = ()
) -> Asking[list[Row]]:
    """Read the rows of a partition whose instant has come, the earliest first, but for endpoints `known`."""
    skipped, rows, low = frozenset(map(keys.relay_to, known)), list[Row](), ""
    for _page in range(_PAGES_MAX):
        page = yield from find(Find(keys.DUE, partition, low, keys.instant_text(until + 1), limit, where))
        rows += [row for row in page if row.values["reader"] not in skipped]
        if len(page) < limit or len(rows) >= limit:
            break
        low = keys.following(page[-1].rk)
    return rows


def sweep(row: Row, here: Here) -> Asking[Seen | None]:
    """Look at the job of a row; return it if the sweep has to act. What relays have to take is left to them.

    The row is then not read again within the time in which every job is looked at, unless the job is to end:
    at the end of its lease the sweep has to act.
    """
    seen = yield from look(row, here)
    now = here.now()
    if seen is None or is_due_step(seen.picture, now):
        return seen
    until, active = now + LOOK_MS, seen.picture.active
    if seen.head.job.state == JobState.CANCELLING and active is not None:
        until = min(until, active.lease_expires_at or until)
    yield from _leave(row, until)
    return None


def _leave(row: Row, until: int) -> Asking[None]:
    """Note that the sweep need not read a row for a while; one that was changed meanwhile stays as it is."""
    told = {"look_at": keys.instant_text(until)}
    yield from write(Put(keys.DUE, row.pk, row.rk, told, row.etag, merge=True))


def look(row: Row, here: Here) -> Asking[Seen | None]:
    """Look at the job of a row that has come; return it if something is due."""
    job_id = str(row.values["job_id"])
    seen = yield from load(job_id)
    if seen is None:
        yield from _close_left(row, job_id, here)
        return None
    seen = yield from finish(seen)
    if seen.head.is_final or seen.head.armed != row.rk:
        yield from write(Drop(keys.DUE, row.pk, row.rk))
        return None
    at = wake(seen.picture)
    if at is not None and at <= here.now():
        return seen
    yield from rearm(seen, here)
    return None


def _close_left(row: Row, job_id: str, here: Here) -> Asking[None]:
    """Close a submission that has no job, once no process can be at it any more: then its row may go."""
    head = yield from get(keys.STEPS, keys.encoded(job_id), keys.HEAD)
    if head is None:
        over = keys.due_instant(row.rk) + ABANDON_MS
        if here.now() < over:
            yield from _leave(row, over)
            return
        left = packed({"state": ABANDONED, "at": here.now()})
        reply = yield from write(Put(keys.STEPS, keys.encoded(job_id), keys.HEAD, left))
        if isinstance(reply, ServiceRefusal):
            return  # it was made after all; the next look sees it
    elif head.values["state"] != ABANDONED:
        return
    yield from write(Drop(keys.DUE, row.pk, row.rk))


def is_due_step(picture: ProtocolPicture, now: int) -> bool:
    """Tell whether the sweep has to act on the active step; what a relay has to publish is the relay's."""
    step, row = picture.active, picture.pending
    if step is None or not step.is_due(now):
        return False
    cancelling = picture.job.state == JobState.CANCELLING
    return step.state != StepState.DISPATCHING or cancelling or (row is not None and row.is_pulled)


def asked(service: str, tenant_id: str | None, limit: int) -> Asking[list[Row]]:
    """Return what is noted as ready for a service, the oldest of every lane."""
    where = () if tenant_id is None else (("tenant_id", "eq", tenant_id),)
    lane = f"{keys.encoded(service)}{keys.JOIN}"
    behind, rows = f"{lane}{keys.JOIN}", list[Row]()
    while True:
        page = yield from find(Find(keys.READY, lane, limit=limit, where=where, pk_below=behind))
        rows += page
        if len(page) < limit:
            return rows
        lane = keys.following(page[-1].pk)  # one that is full keeps no other from being seen


class DueReads:
    """What relays, the sweep and remote workers look for."""

    def __init__(self, client: Carrier, clock: Clock) -> None:
        """Look through this client."""
        self.client = client
        self._clock = clock
        self._ids = SystemIds()

    def now(self) -> int:
        """Return the time of this machine: the service has no clock to be asked."""
        return self._clock.wall_ms()

    def ask_all(self, askings: Sequence[Asking[T]]) -> list[T]:
        """Carry reads side by side; if one fails, all do."""
        return asked_together(self.client, askings)

    def due_steps(self, limit: int) -> list[DueStep]:
        """Return jobs that need the sweep, the longest over first; what is behind is finished on the way."""
        now = self.now()
        found = [
            (picture.active.lease_expires_at or 0, picture.job.job_id)
            for picture in self._looked(sweep, for_sweep(now), now, limit, lambda _picture: True)
            if picture.active is not None
        ]
        return [DueStep(job_id) for _at, job_id in sorted(found)[:limit]]

    def due_directives(self, via: str, limit: int) -> list[OutboxRow]:
        """Return directives for one endpoint that a relay may take now, the longest due first."""
        return self._pushed(for_relays(via), self.now(), limit)

    def stray_directives(self, known: Sequence[str], late_ms: int, limit: int) -> list[OutboxRow]:
        """Return directives for other endpoints than these that no relay took since they became due."""
        return self._pushed(for_strangers(known), self.now() - late_ms, limit, known)

    def _pushed(
        self, where: tuple[Condition, ...], until: int, limit: int, known: Sequence[str] = ()
    ) -> list[OutboxRow]:
        def is_wanted(picture: ProtocolPicture) -> bool:
            row = picture.pending
            return row is not None and not row.is_pulled and row.next_try_at <= until

        found = self._looked(look, where, until, limit, is_wanted, known)
        rows = [picture.pending for picture in found if picture.pending is not None]
        return sorted(rows, key=lambda row: (row.next_try_at, row.outbox_id))[:limit]

    def _looked(
        self,
        looking: Callable[[Row, Here], Asking[Seen | None]],
        where: tuple[Condition, ...],
        until: int,
        limit: int,
        is_wanted: Callable[[ProtocolPicture], bool],
        known: Sequence[str] = (),
    ) -> list[ProtocolPicture]:
        """Follow rows that have come to their jobs, the earliest first, until as many are found as may be.

        One page of each partition is read. What is not wanted leaves the line with this look, so the next one
        comes further.
        """
        most = max(limit, _LOOKED_AT_MAX)
        pages = self.ask_all([come(each, until, most, where, known) for each in keys.DUE_PARTITIONS])
        hints = sorted((row for page in pages for row in page), key=lambda row: row.rk)
        found, at = list[ProtocolPicture](), 0
        while at < len(hints) and len(found) < limit:
            # No more than are wanted, as long as each is: what fell away is made up for at once.
            more = min(_LOOKED_AT_MAX, limit - len(found)) if at == len(found) else _LOOKED_AT_MAX
            chosen, at = hints[at : at + more], at + more
            seen = self.ask_all([looking(row, Here(self.now, self._ids.token())) for row in chosen])
            found += [each.picture for each in seen if each is not None and is_wanted(each.picture)]
        return found

    def asked_directives(self, services: Sequence[str], tenant_id: str | None, limit: int) -> list[OutboxRow]:
        """Return directives that a remote worker of these services may be given, the oldest first."""
        pages = self.ask_all([asked(service, tenant_id, limit) for service in services])
        hints = sorted((row for page in pages for row in page), key=lambda row: row.rk)[: 2 * limit]
        found = self.ask_all([reading.ready(row, self.now()) for row in hints])
        rows = [row for row in found if row is not None]
        return sorted(rows, key=lambda row: (row.next_try_at, row.outbox_id))[:limit]

    def given_directives(self, worker: str, limit: int) -> list[OutboxRow]:
        """Return what this remote worker was given and has not acknowledged, while there is time for that."""
        low, mine = keys.instant_text(self.now() + 1), (("reader", "eq", keys.given_to(worker)),)
        asked_for = [find(Find(keys.DUE, each, low, where=mine)) for each in keys.DUE_PARTITIONS]
        # An answer that was lost is of what was given last.
        hints = sorted((row for page in self.ask_all(asked_for) for row in page), key=lambda row: row.rk)
        found = self.ask_all([reading.given(row, worker, self.now()) for row in hints[-_GIVEN_MAX:]])
        return sorted((row for row in found if row is not None), key=lambda row: row.sent_at or 0)[:limit]

    def count_open(self, tenant_id: str, limit: int) -> int:
        """Count what is to be looked at of a tenant, now or later: one row for each open job."""
        its = (("tenant_id", "eq", tenant_id),)
        rows = [find(Find(keys.DUE, each, limit=limit, where=its)) for each in keys.DUE_PARTITIONS]
        return sum(map(len, self.ask_all(rows)))
