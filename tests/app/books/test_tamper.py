"""Whoever changes the books is found: every column of every table, rows that vanish or come twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.core.audit.free_columns import FREE, FREE_TABLES, UNREAD, free_table
from tallystick.engine.audit.whole_store import verify
from tests.app.books.tampering import KEYS, Books, Change
from tests.app.kinds_of_jobs import Kinds
from tests.app.remote_kinds import live_remotely

SAMPLED = 700
ROOT = Path(__file__).parents[3]


@pytest.fixture
def url(tmp_path):
    """A SQLite file alone: the rules are the same on every store, and a file is changed quickly."""
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def timed(url, clock):
    """It keeps two turns of a loop."""
    tally = Tally(url, clock=clock, keep_turns=2)
    yield tally
    tally.close()


@pytest.fixture
def books(timed, hand, clock, monkeypatch, url):
    """A store that was lived in, with tags, keys, a trimmed loop, and jobs that retention has removed."""
    kinds = Kinds(timed, hand, clock, monkeypatch)
    kinds.plain.submit(0)
    hand.work_all()
    clock.advance(1_000)
    loop = kinds.loop.opts(idempotency_key="loop").submit(0, 5)
    for n in range(5):
        hand.work_all()
        loop.send("turn", n, id=str(n) if n % 2 else None)
    hand.work_all()
    assert loop.history()[0].n > 1
    assert timed.prune(older_than="1s") == 1
    kinds.plain.opts(tags=["red", "blue"]).submit(0)
    kinds.live()
    live_remotely(timed, hand, clock)
    assert verify(timed.runtime().store).findings == []
    return Books(url.removeprefix("sqlite:///"), timed.runtime().store.inspect())


def is_free(change: Change) -> bool:
    """Whether a change may stay unseen; what is free of signals that nobody took is not free of others."""
    why = FREE.get((change.table, change.what))
    return why is not None and not (why == UNREAD and change.row["ledger"])


def unseen(books: Books, changes: list[Change]) -> dict[tuple[str, str], str]:
    """What was changed and not found, by table and column."""
    return {
        (change.table, change.what): str(change)
        for change in changes
        if change.table not in FREE_TABLES and not books.found(change)
    }


@pytest.mark.slow
def test_every_change_is_found_that_is_not_named_as_free(books):
    changes = [change for table in KEYS for change in books.changes(table, all_rows=False)]
    bound = [change for change in changes if not is_free(change)]
    kept = random.Random(7).sample(bound, min(SAMPLED, len(bound)))
    once = {(change.table, change.what): change for change in bound}
    assert unseen(books, [*once.values(), *kept]) == {}


@pytest.mark.slow
def test_no_column_is_named_as_free_that_is_not(books):
    """Of each one a change that is not found."""
    free: dict[tuple[str, str], list[Change]] = {}
    for table in ("jobs", "attempts", "steps", "messages", "outbox", "pruned"):
        for change in books.changes(table, all_rows=False):
            if (change.table, change.what) in FREE:
                free.setdefault((change.table, change.what), []).append(change)
    assert {place for place, changes in free.items() if not all(map(books.found, changes))} == set(FREE)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_change_of_every_row_is_found(books):
    changes = [change for table in KEYS for change in books.changes(table, all_rows=True)]
    bound = [change for change in changes if not is_free(change)]
    assert len(bound) > 5_000
    assert unseen(books, bound) == {}


def test_the_guide_has_the_list():
    assert free_table() in (ROOT / "docs" / "guides" / "verify.md").read_text("utf-8")
