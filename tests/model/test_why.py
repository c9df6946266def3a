"""Every state of the worlds has its sentence, and what the sentence says is so."""

from __future__ import annotations

import pytest

from tallystick.app.asking.remote_why import remote_sentence
from tallystick.app.asking.standing import Position, Stand, stand_of
from tallystick.app.asking.why import SENTENCES
from tallystick.core.pictures import Now
from tests.model.books import NOW, Book
from tests.model.configurations import SMALL, model_of
from tests.model.protocol_rules import load
from tests.model.protocols import ProtocolWorld
from tests.model.protocols import Shape as ProtocolShape
from tests.model.search import explore
from tests.model.world import Shape

WORLDS = [name for name, shape in SMALL.items() if isinstance(shape, Shape)]
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


# What each word claims, read from the rows without the code that chose the word. No two may be true at once.
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


def test_every_word_has_a_claim_and_a_sentence():
    assert set(TRUE) == set(Stand) - {Stand.REMOTE, Stand.NOWHERE}
    assert set(SENTENCES) == set(Stand) - {Stand.REMOTE, Stand.SUCCEEDED, Stand.FAILED, Stand.CANCELLED}


@pytest.mark.parametrize("name", WORLDS)
def test_no_state_of_a_world_is_without_a_sentence_that_is_true(name):
    model = model_of(SMALL[name])
    explore(model)
    seen = set()
    for books in model.all_books:
        for book in books:
            stand = stand_of(Position.of(book.job, book.lease, book.activities), Now(NOW))
            assert [word for word, claims in TRUE.items() if claims(book)] == [stand], book
            seen.add(stand)
    assert seen & {Stand.SUCCEEDED, Stand.CANCELLED, Stand.FAILED}


def test_the_worlds_come_to_every_word():
    """But for two: no world submits a job for later, and in none a job fails and is tried again."""
    seen = set()
    for name in WORLDS:
        model = model_of(SMALL[name])
        explore(model)
        for books in model.all_books:
            seen |= {stand_of(Position.of(book.job, book.lease, book.activities), Now(NOW)) for book in books}
    assert set(TRUE) - seen <= {Stand.NOT_DUE, Stand.BACKING_OFF}
    assert Stand.NOWHERE not in seen


@pytest.mark.parametrize(
    "shape", [ProtocolShape(2, pull=True, again=0), ProtocolShape(1, again=0)], ids=["pulled", "pushed"]
)
def test_every_state_of_a_protocol_job_has_a_sentence(shape):
    world = ProtocolWorld(load(), shape)
    explore(world)
    told = {}
    for picture in world.pictures:
        if picture.job.completed_at is None:
            text, until = remote_sentence(picture, lambda at: "?" if at is None else "T")
            step = picture.active
            assert text
            if step is not None and step.state != "PENDING":
                assert step.step_id in text
                assert until == step.lease_expires_at
                told.setdefault(step.state, text)
    assert {"DISPATCHING", "AWAITING_ACK", "IN_PROGRESS", "FAILED_RETRY"} <= set(told)
