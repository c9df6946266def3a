"""The fifteen digits of everything that a job counts, each drawn with its meaning and what comes next."""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.cli.render.ledger_drawing import what_happens_next
from tallystick.core.audit.book import Book
from tallystick.core.chain import read_step_payload
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.errors import LedgerCorrupt
from tallystick.store.inspection import Inspection

ROWS_MAX: Final = 50
_FIRST: Final = (-1, "", 0)


class Digits(NamedTuple):
    """Digits of one field, by themselves, with what they are called and mean."""

    text: str
    name: str
    meaning: str
    is_set: bool


class LedgerShown(NamedTuple):
    """One ledger."""

    title: str
    about: str
    text: str
    fields: list[Digits]
    next: str
    wrong: str


class BooksShown(NamedTuple):
    """All ledgers of a job, and its semaphore."""

    book: Book
    own: list[LedgerShown]
    activities: list[LedgerShown]
    messages: list[LedgerShown]
    more: bool


def books_of(inspection: Inspection, book: Book) -> BooksShown:
    """Return the books of a job; of a long one, the first activities and messages."""
    job_id = book.job_id
    activities = inspection.activities(job_id, after=_FIRST, limit=ROWS_MAX)
    facts = inspection.facts(job_id, after=0, limit=ROWS_MAX)
    messages = inspection.messages(job_id, after="", limit=ROWS_MAX)
    own = [
        shown("root", "how often the job was entered", book.root_ledger, is_message=False),
        shown("start", "the message that began it", book.start_ledger, is_message=True),
    ]
    steps = [
        shown(f"{step.name}#{step.occurrence}", fact.type, step.ledger, is_message=False)
        for fact in facts
        if (step := read_step_payload(fact.payload)) is not None
    ]
    known = {each.title for each in steps}
    waits = [
        shown(f"{row.name}#{row.occurrence}", row.kind, row.ledger, is_message=False)
        for row, _n, _copy in activities
        if f"{row.name}#{row.occurrence}" not in known
    ]
    sent = [shown(each.name, f"{each.kind} {each.guid}", each.ledger, is_message=True) for each in messages]
    more = ROWS_MAX in (len(activities), len(facts), len(messages))
    return BooksShown(book, own, [*steps, *waits], sent, more)


def shown(title: str, about: str, ledger: int, *, is_message: bool) -> LedgerShown:
    """Return a ledger with its fields; digits that contradict each other are shown and called wrong."""
    kind = GuidLedger if is_message else ActivityLedger
    try:
        digits = kind.parse(f"{ledger:015d}")
    except LedgerCorrupt as error:
        return LedgerShown(title, about, f"{ledger:015d}", [], "", error.message)
    fields = [
        Digits(f"{field.of(digits):0{field.span}d}", field.name, field.meaning, bool(field.of(digits)))
        for field in digits.FIELDS
    ]
    doubts = contradictions(digits)
    comes = "" if doubts else what_happens_next(digits).sentence
    return LedgerShown(title, about, digits.text, fields, comes, ", and ".join(doubts))
