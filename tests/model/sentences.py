"""What each word about a job claims, read from its rows without the code that chose the word."""

from __future__ import annotations

from typing import Any

from tallystick.app.asking.standing import Position, Stand, stand_of
from tallystick.core.deciding import decide
from tallystick.core.pictures import Now
from tallystick.store.api import CancelJob
from tests.model import effects
from tests.model.books import FUTURE, NOW, Book
from tests.model.jobs import Jobs

ENDED = ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")


def is_due(book: Book) -> bool:
    return book.job.ready_at is not None and book.job.ready_at <= NOW


def is_late(book: Book) -> bool:
    return book.job.deadline_at is not None and book.job.deadline_at <= NOW


def is_run(book: Book) -> bool:
    """Whether a live worker has it, and its work is not committed."""
    return book.lease is not None and book.lease.live and book.lease.status != "COMMITTED"


def is_left(book: Book) -> bool:
    """Whether nobody has it and nobody has stopped it."""
    return book.lease is None and book.job.hold is None and book.job.state in ("QUEUED", "IN_PROGRESS")


def is_open(book: Book) -> bool:
    return any(each.state not in ENDED for each in book.activities)


def is_unknown(book: Any) -> bool:
    """Whether an effect was called, or is being called, and it is not known what came of that."""
    open_rows = (row for row, _live in getattr(book, "rows", ()) if row.outcome is None)
    return any(row.phase in ("CALLING", "IN_DOUBT") or row.doubt is not None for row in open_rows)


def is_ending(book: Any) -> bool:
    """Whether it was asked to end, and no worker has it or is to come for it."""
    is_asked = book.job.state == "CANCELLING" and book.job.cancel_at is not None
    return is_asked and book.lease is None and not is_due(book)


# No two may be true at once.
TRUE = {
    Stand.SUCCEEDED: lambda book: book.job.state == "SUCCEEDED",
    Stand.FAILED: lambda book: book.job.state == "FAILED_FINAL",
    Stand.CANCELLED: lambda book: book.job.state == "CANCELLED",
    Stand.COMMITTED: lambda book: (
        book.lease is not None
        and book.lease.status == "COMMITTED"
        and (book.lease.live or book.job.hold is None)
    ),
    Stand.CLEANING_UP: lambda book: is_run(book) and book.job.state == "CANCELLING",
    Stand.STOPPING: lambda book: (
        is_run(book) and book.job.hold is not None and book.job.state != "CANCELLING"
    ),
    Stand.RUNNING: lambda book: is_run(book) and book.job.hold is None and book.job.state == "IN_PROGRESS",
    Stand.LOST: lambda book: (
        book.lease is not None and not book.lease.live and book.lease.status != "COMMITTED"
    ),
    # A sweep ends it only if nothing may have happened outside of which it is not known.
    Stand.ENDING: lambda book: is_ending(book) and not is_unknown(book),
    Stand.ENDING_IN_DOUBT: lambda book: is_ending(book) and is_unknown(book),
    Stand.TO_CLEAN_UP: lambda book: (
        book.lease is None
        and book.job.state == "CANCELLING"
        and is_due(book)
        and book.job.cancel_at is not None
    ),
    Stand.HELD: lambda book: (
        book.job.hold is not None
        and book.job.state in ("QUEUED", "IN_PROGRESS")
        and (book.lease is None or (book.lease.status == "COMMITTED" and not book.lease.live))
    ),
    Stand.LATE: lambda book: is_left(book) and is_late(book),
    Stand.QUEUED: lambda book: (
        is_left(book) and not is_late(book) and is_due(book) and book.job.state == "QUEUED"
    ),
    Stand.NOT_DUE: lambda book: (
        is_left(book) and not is_late(book) and not is_due(book) and book.job.state == "QUEUED"
    ),
    Stand.DUE: lambda book: (
        is_left(book) and not is_late(book) and is_due(book) and book.job.state == "IN_PROGRESS"
    ),
    Stand.WAITING: lambda book: (
        is_left(book)
        and not is_late(book)
        and not is_due(book)
        and book.job.state == "IN_PROGRESS"
        and is_open(book)
    ),
    Stand.BACKING_OFF: lambda book: (
        is_left(book)
        and not is_late(book)
        and book.job.ready_at is not None
        and not is_due(book)
        and book.job.state == "IN_PROGRESS"
        and not is_open(book)
    ),
}


class SeenEffects(effects.EffectWorld):
    """A world of effects that keeps the books of all its states."""

    def __init__(self, shape: effects.Shape) -> None:
        super().__init__(shape)
        self.books: set[effects.Book] = set()

    def check(self, state: effects.State) -> None:
        super().check(state)
        self.books.update(map(_dated, state.books))


def _dated(book: effects.Book) -> effects.Book:
    """Return a book with the instants of this page: in its world all that is not yet due is due LATER."""
    job = book.job
    return book._replace(job=job._replace(ready_at=FUTURE if job.ready_at == effects.LATER else job.ready_at))


def words_of(world: Jobs | SeenEffects) -> set[Stand]:
    """Return the words of all states of a world that was searched; each is true, and no other is."""
    if isinstance(world, SeenEffects):
        return {_word(book, tuple(row for row, _live in book.rows)) for book in world.books}
    return {_word(book) for book in {book for books in world.all_books for book in books}}


def _word(book: Any, rows: Any = ()) -> Stand:
    stand = stand_of(Position.of(book.job, book.lease, book.activities, rows), Now(NOW))
    assert [word for word, claims in TRUE.items() if claims(book)] == [stand], book
    return stand


def swept(book: effects.Book) -> str:
    """Return what a job is after a sweep that finds its grace over."""
    state = effects.State((book,), (), *[0] * 6)
    decision = decide(effects.pictures_of(state), CancelJob(book.job.job_id, 0, force=True), effects.NOW)
    return str(decision.outcome)
