"""What each word about a job claims, read from its rows without the code that chose the word."""

from __future__ import annotations

from tallystick.app.asking.standing import Position, Stand, stand_of
from tallystick.core.pictures import Now
from tests.model.books import NOW, Book
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
    Stand.ENDING: lambda book: (
        book.lease is None and book.job.state == "CANCELLING" and not is_due(book) and book.job.cancel_at
    ),
    Stand.TO_CLEAN_UP: lambda book: (
        book.lease is None and book.job.state == "CANCELLING" and is_due(book) and book.job.cancel_at
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


def words_of(world: Jobs) -> set[Stand]:
    """Return the words of all states of a world that was searched; each is true, and no other is."""
    seen = set()
    for book in {book for books in world.all_books for book in books}:
        stand = stand_of(Position.of(book.job, book.lease, book.activities), Now(NOW))
        assert [word for word, claims in TRUE.items() if claims(book)] == [stand], book
        seen.add(stand)
    return seen
