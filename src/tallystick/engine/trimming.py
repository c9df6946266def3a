"""Trimming: before a loop leaves a turn its oldest turns go, if twice as many are there as are kept.

It is done by the worker that holds the job, under its fence, a bounded number of facts in each bundle. What
cannot go now goes when the job trims again, so nothing that is met here disturbs the job.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import WAS
from tallystick.core.limits import PAGE_ROWS_MAX, TRIM_BATCH_RECORDS_MAX
from tallystick.core.queues.reusing import REPLACE
from tallystick.core.verbs.trimming import FirstFact, Trimmed, last_to_go, start_print
from tallystick.engine.committer import Committer
from tallystick.engine.segment import Segment
from tallystick.errors import BadInput, TallyError
from tallystick.store.api import Bundle, Store, StoredEvent, TurnEnd
from tallystick.store.inspection import Inspection

_log: Final = logging.getLogger("tallystick.worker")


def turns_kept(value: object) -> int | None:
    """Return how many turns of a loop are kept, None for all; refuse what is no such number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"keep_turns is a whole number of at least 1, or None to keep all; not {value!r}")
    return value


def trim_turns(store: Store, committer: Committer, segment: Segment, keep: int) -> None:
    """Remove the turns of a held job beyond the newest `keep`, oldest first."""
    try:
        inspection = store.inspect()
        while (bundle := _next(inspection, segment, keep)) is not None:
            committer.call(bundle)
    except TallyError as error:
        _log.warning(
            "job %s: its old turns are not trimmed now, %s",
            segment.job_id,
            error,
            extra={"action": "trim.refused", "job_id": segment.job_id},
        )


def _next(inspection: Inspection, segment: Segment, keep: int) -> Bundle | None:
    """Return the bundle that removes the next turns, or None if all that are there are kept."""
    job_id = segment.job_id
    ends = inspection.turn_ends(job_id, limit=PAGE_ROWS_MAX)
    oldest = inspection.facts(job_id, after=0, limit=1)
    if not ends or not oldest:
        return None
    dimension = segment.claimed.dimension
    last = last_to_go(list(map(_end, ends)), oldest[0].n - 1, dimension, keep, TRIM_BATCH_RECORDS_MAX)
    told = None if last is None else _told(inspection, oldest[0], ends[0], last)
    return None if last is None or told is None else segment.trimmed(told, last)


def _end(fact: StoredEvent) -> TurnEnd:
    dimension = msgspec.json.decode(fact.payload)["dimension"] - 1
    return TurnEnd(dimension, fact.n, fact.event_hash, fact.attempt)


def _told(inspection: Inspection, oldest: StoredEvent, turned: StoredEvent, last: TurnEnd) -> Trimmed | None:
    """Return what the fact of this trimming says; of what went before, the fact of the last one tells."""
    gone = (last.dimension + 1, last.n, last.event_hash.hex(), last.attempt)
    before = inspection.newest_trim(oldest.job_id)
    whole, book = inspection.whole(oldest.job_id), inspection.book(oldest.job_id)
    if whole is not None and before is not None:
        carried = msgspec.json.decode(before.payload, type=Trimmed)
        return Trimmed(*gone, carried.first, carried.start, carried.given, whole.rest.current_step_id)
    # What a job was born with is told by the fact of its replacement, if there is one: that stays.
    replaced = any(fact.type == REPLACE for fact in inspection.facts(oldest.job_id, after=oldest.n, limit=1))
    if whole is None or book is None or replaced:
        return None
    first = FirstFact(oldest.type, oldest.at, msgspec.json.decode(oldest.payload))
    start = start_print(whole.rest.start_redeliveries, book.start_acked_at)
    given = msgspec.json.decode(turned.payload).get(WAS)
    return Trimmed(*gone, first, start, given, whole.rest.current_step_id)
