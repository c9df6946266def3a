"""Endings written as one list in one statement: of attempts, and of jobs with their last steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.chain import Chain, Link
from tallystick.core.ledger.marks import STARTED, settled
from tallystick.store.api import EndAttempt, EndJob, Fact, Fence, Outcome, RecordStep
from tallystick.store.postgres.server.connection import row_moved
from tallystick.store.postgres.writing import storable
from tallystick.store.refusals import Refused, stale
from tallystick.store.sql.shapes import recorded

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

# Root and start of a plain job before and after its end: nothing else of it was ever open.
_ROOT, _START = settled(STARTED.activity, STARTED.guid, closes=True)
_DIGITS: Final = (str(STARTED.activity), str(_ROOT), str(STARTED.guid), str(_START))

Places = list[tuple[Chain, Link]]


def send_endings_of_attempts(
    writing: PostgresBatch, requests: Sequence[EndAttempt]
) -> Callable[[], list[Outcome]]:
    """Send the ends of attempts and return how to read what came of each."""

    def row(index: int, places: Places) -> tuple[object, ...]:
        request = requests[index]
        # How long from now, because only the store's clock counts.
        delay_ms = None if request.ready_at is None else request.ready_at - request.fact.at
        held = (delay_ms, request.hold, storable(request.hold_reason))
        about = (request.reason, int(request.charged))
        return (request.fence, *about, *held, *_told(writing, request.fact, places))

    return _send(writing, "end_attempts", requests, row)


def send_endings_of_jobs(
    writing: PostgresBatch, requests: Sequence[EndJob], steps: Sequence[RecordStep | None]
) -> Callable[[], list[Outcome]]:
    """Send the ends of jobs, some with their last step, which stands or falls with them under one fence."""

    def row(index: int, places: Places) -> tuple[object, ...]:
        request, step = requests[index], steps[index]
        last = None
        if step is not None:
            link = writing.placed_step(step)
            places.append((step.chain, link))
            last = (recorded(step), link)
        told = _told(writing, request.fact, places)
        about = (request.reason, int(request.charged), request.attempt_status)
        ending = (request.state, request.result, request.error, request.error_code)
        return (request.fence, *about, *ending, storable(request.error_message), *told, last)

    return _send(writing, "end_jobs", requests, row, _DIGITS)


def _told(writing: PostgresBatch, fact: Fact, places: Places) -> tuple[object, ...]:
    """Return a fact as both statements read it, in the place that it takes."""
    link = writing.placed_link(fact)
    places.append((fact.chain, link))
    return fact.type, fact.at, fact.attempt, fact.payload, link


def _send(
    writing: PostgresBatch,
    statement: str,
    requests: Sequence[EndAttempt | EndJob],
    row: Callable[[int, Places], tuple[object, ...]],
    digits: tuple[str, ...] = (),
) -> Callable[[], list[Outcome]]:
    """End attempts and what ends with them; of two requests under one fence the first counts.

    A worker that lost a job and has it again may report for both attempts in one flush: one of them is live.
    """
    seen: set[Fence] = set()
    chosen: list[int] = []
    for index, request in enumerate(requests):
        if request.fence not in seen:
            seen.add(request.fence)
            chosen.append(index)
    places: list[Places] = [[] for _ in requests]
    rows = [row(index, places[index]) for index in chosen]
    times = writing.times
    cursor = writing.ask(statement, rows, times.epoch, times.lease, times.wall, *digits)

    def answer() -> list[Outcome]:
        ((live, sound, ended),) = cursor.fetchall()
        if len(sound) != len(ended):
            raise row_moved()
        if len(live) != len(sound):
            (short, *_more) = set(live) - set(sound)
            raise Refused(stale(requests[chosen[short - 1]].fence))
        return writing.accepted(requests, places, {chosen[place - 1] + 1 for place in ended})

    return answer


def steps_with_endings(bundles: Sequence[Sequence[Any]]) -> list[RecordStep | None]:
    """Return the step of each bundle that ends with its job, or None."""
    return [bundle[0] if len(bundle) > 1 else None for bundle in bundles]
