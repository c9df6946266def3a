"""Endings that take more than one statement: of jobs that waited or have a parent, and by sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tallystick.store.api import EndAttempt, EndJob
from tallystick.store.groups import count_child
from tallystick.store.postgres.rows import storable
from tallystick.store.refusals import Refused, stale
from tallystick.store.waits import close_waits

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import Batch


def hold_ending(writing: Batch, request: EndJob) -> None:
    """Take the rows of one ending in hand, or refuse it: a sweep does not wait for anybody."""
    if not lock_expired(writing, [request]):
        raise Refused(stale(request.fence))
    writing.lock(request.fence.job_id)


def end_alone(writing: Batch, request: EndJob) -> None:
    """End one job whose row is in hand: what it had open is dropped, its parent counts it."""
    fence, times = request.fence, writing.times
    event = writing.placed(request.fact)
    ending = (request.attempt_status, request.reason, str(int(request.charged)), times.epoch, times.lease)
    live = "false" if request.expired else "true"
    writing.many("end_attempt", [(*fence, *ending, live, writing.wall)], fence)
    if request.waited or request.driver != "start":
        close_waits(writing, request)
    else:
        writing.changed("drop_messages", (*fence[:2], "", writing.wall, 1))
    if request.parent is not None:
        count_child(writing, fence.job_id, request.parent, request.state)
    about = (request.state, request.result, request.error, request.error_code)
    row = (*fence[:2], *about, storable(request.error_message), event.n, event.event_hash, writing.wall)
    writing.many("end_waited_job" if request.driver != "start" else "end_job", [row], fence)
    writing.many("insert_event", [event], fence)


def lock_expired(writing: Batch, requests: Sequence[EndAttempt | EndJob]) -> set[int]:
    """Return which requests to go on with: those of holders, and those of a sweep that nobody else holds.

    A sweep does not wait for anybody, and must have seen the end of the chain: a holder may have written
    after it was read.
    """
    swept = [index for index, request in enumerate(requests) if request.expired]
    if not swept:
        return set(range(len(requests)))
    chains = [requests[index].fact.chain for index in swept]
    rows = [
        (*requests[index].fence, chain.n, chain.head.hex())
        for index, chain in zip(swept, chains, strict=True)
    ]
    ours, unmoved = writing.ask("lock_expired", rows), writing.ask("unmoved", rows)
    places = {place for (place,) in ours.fetchall()} & {place for (place,) in unmoved.fetchall()}
    lost = {index for place, index in enumerate(swept, start=1) if place not in places}
    return set(range(len(requests))) - lost
