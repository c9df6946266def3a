"""Sentences about jobs that were asked to end and have not: who lets them, and what they wait for."""

from __future__ import annotations

from tallystick.app.asking.effects_why import doubts_actions, doubts_text, known_of, moves_at, whether
from tallystick.app.asking.looked import Looked
from tallystick.app.asking.sentence import Sentence, clock_text
from tallystick.core.verbs.asking import DEADLINE


def _asked_at(looked: Looked) -> int | None:
    """Return when the job was asked to end, if the books say so; `updated_at` moves on after that."""
    row = looked.row
    if row.error_code != DEADLINE:
        return looked.asked_at
    has_passed = row.deadline_at is not None and row.deadline_at <= looked.now
    return row.deadline_at if has_passed else None


def _asked(looked: Looked) -> str:
    at = _asked_at(looked)
    if looked.row.error_code != DEADLINE:
        return "it was asked to end" if at is None else f"it was asked to end at {clock_text(at)}"
    passed = "has passed" if at is None else f"passed at {clock_text(at)}"
    return f"it was asked to end because its deadline {passed}"


def _ends(looked: Looked) -> str:
    """Return when a job is ended that does not end by itself."""
    doubts = looked.outside.doubts
    names = " and ".join(dict.fromkeys(row.effect for row in doubts))
    but = f", but not before it is known what came of {names}" if names else ""
    return f"it is ended at {clock_text(looked.book.cancel_at)} if it has not by then{but}"


def cleaning_up(looked: Looked) -> Sentence:
    """Return the sentence about a job that its worker lets clean up."""
    return Sentence(
        f"{_asked(looked)} and cleans up; {_ends(looked)}",
        _asked_at(looked),
        looked.book.cancel_at,
        (f"tally cancel {looked.row.job_id} --grace 0",),
    )


def to_clean_up(looked: Looked) -> Sentence:
    """Return the sentence about a job that waits for a worker to clean up."""
    queue = looked.row.queue
    return Sentence(
        f"{_asked(looked)}, and waits for a worker on queue {queue} to clean up; {_ends(looked)}",
        _asked_at(looked),
        looked.book.cancel_at,
        (f"tally work APP --queues {queue}",),
    )


def ending(looked: Looked) -> Sentence:
    """Return the sentence about a job that a sweep ends."""
    return Sentence(
        f"{_asked(looked)}; no worker runs it, and the next sweep of a worker ends it",
        _asked_at(looked),
        looked.book.cancel_at,
        ("tally work APP",),
    )


def ending_in_doubt(looked: Looked) -> Sentence:
    """Return the sentence about a job that ends when it is known what came of its effects, and not before."""
    doubts, now = looked.outside.doubts, looked.now
    moves = [moves_at(row, now) for row in doubts]
    known = [at for at in moves if at is not None]
    text = f"{_asked(looked)}, and waits until it is known {whether(doubts[0])}: {known_of(doubts[0], now)}"
    return Sentence(
        f"{text}{doubts_text(doubts[1:], now)}",
        _asked_at(looked),
        max(known) if len(known) == len(moves) else None,
        (*doubts_actions(doubts, looked.row.state), f"tally cancel {looked.row.job_id} --force"),
    )
