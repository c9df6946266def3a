"""Births: submissions become jobs, those of a kind in one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from tallystick.core.audit.fingerprints import birth_texts
from tallystick.core.chain import GENESIS, Chain, Link, event_hash
from tallystick.core.ledger.marks import OPENED, STARTED
from tallystick.core.lifecycles import JobState
from tallystick.store.api import (
    Existing,
    Fact,
    Outcome,
    QueueHasLimits,
    StoredEvent,
    SubmitJob,
    SubmitJobs,
)
from tallystick.store.postgres.server.connection import row_moved
from tallystick.store.postgres.server.wire import hashes, numbers, texts
from tallystick.store.postgres.statements import sql
from tallystick.store.refusals import Refused
from tallystick.store.sql.shapes import fields

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

Answer = Callable[[], list[Outcome]]


_PIECE: Final = 200
_LISTS: Final = [numbers if kind == "bigint" else texts for kind in fields("NewJob").values()]


def send_births(writing: PostgresBatch, requests: Sequence[SubmitJob]) -> Answer:
    """Send submissions and return how to read which of them became jobs."""
    plain = [_is_plain(request) for request in requests]
    if all(plain):
        _send_plain(writing, requests)
        return lambda: [None] * len(requests)
    if any(plain):
        _send_plain(writing, [request for request, is_plain in zip(requests, plain, strict=True) if is_plain])
    answer = _send_others(
        writing, [request for request, is_plain in zip(requests, plain, strict=True) if not is_plain]
    )

    def merged() -> list[Outcome]:
        rest = iter(answer())
        return [None if is_plain else next(rest) for is_plain in plain]

    return merged


def send_births_alike(writing: PostgresBatch, request: SubmitJobs) -> None:
    """Send jobs that differ in their ids and payloads alone, in pieces, as `_send_plain` does."""
    job, ((_chain, kind, at, attempt, _word),), _reservation, _lease = request.like
    shared = (msgspec.json.encode(job._replace(payload="")).decode(), str(OPENED))
    words = birth_texts(job, request.payloads)
    for start in range(0, len(request.job_ids), _PIECE):
        piece = slice(start, start + _PIECE)
        ids, told = request.job_ids[piece], words[piece]
        heads = [
            event_hash(GENESIS, job_id, 1, kind, at, attempt, word)
            for job_id, word in zip(ids, told, strict=True)
        ]
        lists = (texts(ids), texts(request.payloads[piece]), texts(told), hashes(heads))
        writing.connection.execute(sql("insert_jobs_alike"), (writing.times.wall, *lists, *shared))
    # No process holds the ends of their chains. One tells whether all are there, if the answer is lost.
    writing.placed_link(Fact(Chain(request.job_ids[-1]), kind, at, attempt, words[-1]))


def _is_plain(request: SubmitJob) -> bool:
    """Tell whether a job waits for any worker, and no reservation stands against it."""
    job, facts, reservation, lease = request
    if reservation is not None or lease is not None or len(facts) != 1:
        return False
    chain, kind, at, attempt, _payload = facts[0]
    return chain.n == 0 and kind == "submit" and at == job.created_at and attempt == 0


def _send_plain(writing: PostgresBatch, requests: Sequence[SubmitJob]) -> None:
    """Send jobs that are born QUEUED: all of them are written, or the database refuses them.

    A long list goes in pieces, so that the server inserts one while the next is prepared.
    """
    for start in range(0, len(requests), _PIECE):
        _send_piece(writing, requests[start : start + _PIECE])


def _send_piece(writing: PostgresBatch, requests: Sequence[SubmitJob]) -> None:
    facts = [request.facts[0] for request in requests]
    heads = [writing.placed_link(fact).event_hash for fact in facts]
    columns = zip(*[request.job for request in requests], strict=True)
    lists = [said(column) for said, column in zip(_LISTS, columns, strict=True)]
    words = texts([fact.payload for fact in facts])
    writing.connection.execute(
        sql("insert_queued_jobs"), (writing.times.wall, *lists, words, hashes(heads), str(OPENED))
    )


def _send_others(writing: PostgresBatch, requests: Sequence[SubmitJob]) -> Answer:
    """Send jobs that were reserved or are claimed at once, and return how to read which were first."""
    keys = [
        (*request.reservation, request.job.job_id, request.job.created_at)
        for request in requests
        if request.reservation is not None
    ]
    if keys:
        writing.ask("reserve", keys)
    placed = [[writing.placed(fact) for fact in request.facts] for request in requests]
    for request in requests:
        request.facts[0].chain.era = writing.era
    rows = [_row(request, events) for request, events in zip(requests, placed, strict=True)]
    times = writing.times
    born = writing.ask("insert_jobs", rows, times.epoch, times.lease, times.wall)
    holders = writing.ask("reservations", keys) if keys else None

    def answer() -> list[Outcome]:
        fresh = {place for (place,) in born.fetchall()}
        found = {place: Existing._make(holder) for place, *holder in holders.fetchall()} if holders else {}
        outcomes: list[Outcome] = []
        key = 0
        for place, (request, events) in enumerate(zip(requests, placed, strict=True), start=1):
            key += request.reservation is not None
            holder = None if request.reservation is None else found.get(key)
            own = request.reservation is None or (holder and holder.job_id == request.job.job_id)
            if place not in fresh and request.lease is not None and own:
                raise Refused(QueueHasLimits(request.job.queue))
            if place not in fresh and holder is None:
                raise row_moved()  # the job that held the key was pruned before it was read
            outcomes.append(None if place in fresh else found[key])
            if place not in fresh:
                for fact, event in zip(reversed(request.facts), reversed(events), strict=True):
                    writing.give_back(fact.chain, Link(event.n, event.prev_hash, event.event_hash))
        return outcomes

    return answer


def _row(request: SubmitJob, events: Sequence[StoredEvent]) -> tuple[object, ...]:
    """Return a new job as `insert_jobs` reads it."""
    job, _facts, reservation, lease = request
    born = (JobState.QUEUED, 0, OPENED, 0)
    if lease is not None:
        born = (JobState.IN_PROGRESS, 1, STARTED.activity, STARTED.guid)
    head = events[-1]
    return (job, *born, head.n, head.event_hash, events, reservation, lease)
