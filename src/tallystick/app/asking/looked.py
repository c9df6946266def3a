"""Everything that a sentence about a job is made of, read as of one instant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from tallystick.app.asking.standing import Position
from tallystick.core.audit.book import AttemptRow, Book
from tallystick.core.effects.doubts import AwaitedKey
from tallystick.core.effects.rows import EffectRow
from tallystick.core.lifecycles import ATTEMPT, AttemptState, JobState
from tallystick.core.pictures import Lease
from tallystick.store.api import JobRow, OpenWait, StoredEvent
from tallystick.store.inspection import Inspection

WAITS_SHOWN: Final = 3
_EFFECTS_MAX: Final = 100


class Outside(NamedTuple):
    """What a job has open outside: effects of its own, and the keys of other jobs that it waits for."""

    own: list[EffectRow]
    awaited: list[AwaitedKey]

    @property
    def doubts(self) -> list[EffectRow]:
        """Return the effects of the job that may have happened, of which it is not known."""
        return [row for row in self.own if row.may_have_happened]


class Looked(NamedTuple):
    """What was read of a job that has not ended, and when."""

    row: JobRow
    book: Book
    attempt: AttemptRow | None
    lease: Lease | None
    # By the wall clock when the lease ends or has ended; None if that cannot be known.
    lease_until: int | None
    waits: list[OpenWait]
    last: StoredEvent | None
    known: Collection[tuple[str, str]] | None
    outside: Outside
    # When a person asked it to end, if that is on the books.
    asked_at: int | None
    now: int

    @property
    def position(self) -> Position:
        """Return what of this says where the job stands."""
        row, book = self.row, self.book
        is_remote = book.attempt == 0 and book.start_acked_at is not None
        about = (book.state, book.attempt, row.ready_at, book.hold, row.deadline_at, self.lease)
        return Position(*about, bool(self.waits), is_remote, bool(self.outside.doubts))


def look(
    inspection: Inspection, row: JobRow, now: int, known: Collection[tuple[str, str]] | None
) -> Looked | None:
    """Read what a sentence needs; None for a job that has ended, of which the row says all."""
    book = None if row.completed_at is not None else inspection.book(row.job_id)
    if book is None:
        return None
    attempts = inspection.attempts(row.job_id)
    newest = attempts[-1] if attempts and AttemptState(attempts[-1].status) not in ATTEMPT.final else None
    lease, until = None, None
    if newest is not None:
        epoch, instant = inspection.lease_clock()
        left = newest.lease_expires_at - instant if newest.lease_epoch == epoch else None
        lease = Lease(newest.attempt, newest.lease_id, newest.status, (left or 0) > 0, newest.guid)
        until = None if left is None else now + left
    waits = inspection.open_waits(row.job_id, limit=WAITS_SHOWN + 1)
    last = inspection.newest_event(row.job_id)
    asked_at = inspection.asked_at(row.job_id) if book.state == JobState.CANCELLING else None
    outside = _outside(inspection, row.job_id, waits)
    return Looked(row, book, newest, lease, until, waits, last, known, outside, asked_at, now)


def _outside(inspection: Inspection, job_id: str, waits: list[OpenWait]) -> Outside:
    """Read the effects that are open; the step of each is one of the waits, which may be more than shown."""
    if len(waits) <= WAITS_SHOWN and not any(wait.kind == "effect" for wait in waits):
        return Outside([], [])
    return Outside(open_effects(inspection, job_id), inspection.awaited_keys(job_id, limit=WAITS_SHOWN))


def open_effects(inspection: Inspection, job_id: str) -> list[EffectRow]:
    """Return the effects of a job that have not ended, as many as a sentence looks at."""
    return inspection.open_keys(job_id, limit=_EFFECTS_MAX)
