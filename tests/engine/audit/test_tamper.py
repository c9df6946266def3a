"""Changed books are found: hostile values in every column of every table, rows gone, twice or swapped."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tallystick import Tally
from tallystick.core.audit.free_columns import (
    ASKED,
    FREE,
    FREE_OPEN,
    FREE_TABLES,
    IN_DOUBT,
    LOOKED_AT,
    NEWEST,
    NOT_BORN,
    ON_ITS_WAY,
    RUNS,
    UNREAD,
    free_table,
    open_table,
)
from tallystick.core.ledger.marks import is_taken
from tallystick.engine.audit.whole_store import verify
from tallystick.testing.stepping import ClaimedSegment, SteppedWorker, check_store
from tests.app.effect_kinds import live_with_effects
from tests.app.kinds_of_jobs import Kinds
from tests.app.open_kinds import (
    live_in_queues,
    stay_held,
    stay_open_by_protocol,
    stay_open_remotely,
    stay_open_with_effects,
)
from tests.app.protocol_kinds import live_by_protocol
from tests.app.remote_kinds import live_remotely
from tests.engine.audit.tampering import KEYS, Books, Change

# How many changes of each store are made in every run of the tests; all of them in the long one.
SAMPLED = {"sqlite": 2_500, "postgres": 0}
# The clock of a file is a table of its own; a server has one.
OF_FILES = {"sqlite": set(), "postgres": {"clock"}}
ROOT = Path(__file__).parents[3]
# Which rows of a column that is free only of some are.
REMOTE = ("remote", "protocol")


@pytest.fixture
def timed(url, clock):
    """It keeps two turns of a loop."""
    tally = Tally(url, clock=clock, keep_turns=2)
    yield tally
    tally.close()


class Ticking(SteppedWorker):
    """A worker that takes a while for everything, so that no two things happen in one instant."""

    def claim_many(self, limit: int) -> list[ClaimedSegment]:
        self.clock.advance(1)
        return super().claim_many(limit)

    def run(self, segment: ClaimedSegment) -> str:
        self.clock.advance(1)
        try:
            return super().run(segment)
        finally:
            self.clock.advance(1)


@pytest.fixture
def hand(timed, clock):
    return Ticking(timed, clock)


def live_before(timed, hand, clock, kinds: Kinds) -> int:
    """Jobs that retention will remove, a trimmed loop, acts and tags; return since when others are."""
    removed = kinds.plain.submit(0)
    kinds.plain.submit(1)
    hand.work_all()
    # What is said to a job that has ended changes nothing, and is kept.
    removed.pause(by="ann")
    began = clock.wall_ms()
    clock.advance(1_000)
    loop = kinds.loop.opts(idempotency_key="loop").submit(0, 5)
    for n in range(5):
        hand.work_all()
        loop.send("turn", n, id=str(n) if n % 2 else None)
    hand.work_all()
    assert loop.history()[0].n > 1
    for who in ("bob", "cem"):
        loop.pause(by=who)
        timed.queues.pause("emails", by=who)
    kinds.plain.opts(tags=["red", "blue"]).submit(0)
    return began


@pytest.fixture(params=["ended", "open"])
def books(request, timed, hand, clock, monkeypatch, url):
    """A store that was lived in: jobs of every kind that end in every way, or stay open at every point."""
    kinds = Kinds(timed, hand, clock, monkeypatch)
    began = live_before(timed, hand, clock, kinds)
    if request.param == "ended":
        live_remotely(timed, hand, clock)
        live_by_protocol(timed, clock)
        live_with_effects(timed, hand, clock)
        kinds.live()
    else:
        side = Ticking(timed, clock, queues=("side",))
        live_in_queues(timed, clock)
        stay_open_by_protocol(timed, clock)
        stay_open_with_effects(timed, side, clock)
        stay_open_remotely(timed, side)
        stay_held(timed, side)
        kinds.stay_open()
    assert timed.prune(older_than=f"{clock.wall_ms() - began}ms") == 2
    assert check_store(timed) == []
    lived_in = Books(url, timed.runtime().store.inspect())
    yield lived_in
    lived_in.close()


class Freedom:
    """Which changes may stay unseen: of some columns that is so for some rows alone."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._ended = books.ended
        live = "select job_id from attempts where unit = '' and status in ('LEASED', 'IN_PROGRESS')"
        self._run = {job_id for (job_id,) in books.db.run(live)}

    def holds(self, change: Change) -> bool:
        """Whether a change may stay unseen."""
        if change.what == "rows swapped":
            return self._may_swap(change)
        row = change.row
        if change.table == "effect_keys" and change.what == "called_at" and row["error"]:
            return "before it was called again" in row["error"]
        why = FREE.get((change.table, change.what))
        only = {UNREAD: self._is_unread, NEWEST: lambda row: row["seq"] == self._books.newest(change.table)}
        if why is not None and only.get(why, lambda _row: True)(row):
            return True
        # One that has entered a wait and was not taken yet says what it wants.
        if change.table == "messages" and change.what == "payload" and row["kind"] == "signal":
            return not is_taken(row["ledger"])
        return self._is_open(change)

    def _is_open(self, change: Change) -> bool:
        """Whether a column is free because something goes on."""
        row, why = change.row, FREE_OPEN.get((change.table, change.what))
        if why is None:
            return False
        rules = {
            RUNS: lambda: row["job_id"] in self._run,
            ASKED: lambda: row["state"] == "CANCELLING" and row["deadline_at"] is not None,
            ON_ITS_WAY: lambda: row["kind"] == "remote" and row["completed_at"] is None,
            LOOKED_AT: lambda: row["kind"] in REMOTE and row["completed_at"] is None,
            NOT_BORN: lambda: row["kind"] == "group" and not row["ledger"] // 10**11 % 10,
            IN_DOUBT: lambda: row["state"] == "COMMITTED",
        }
        return rules.get(why, lambda: row["job_id"] not in self._ended)()

    def _may_swap(self, change: Change) -> bool:
        row, of_messages = change.row, change.table == "messages"
        if of_messages and {*change.columns} <= {"ledger", "arrived"}:
            return True
        unread = of_messages and "ledger" not in change.columns and self._is_unread(row)
        # Two signals of one job that change places have each the other's guid, which is free.
        named = of_messages and row["kind"] == "signal" and not {"job_id", "kind"} & {*change.columns}
        return named or unread or all(self.holds(change._replace(what=column)) for column in change.columns)

    def _is_unread(self, message: dict[str, Any]) -> bool:
        """Whether a signal was never taken, or by a wait that was dropped before it was answered."""
        dropped = self._books.is_dropped(message)
        return message["kind"] == "signal" and (not message["ledger"] or dropped)


def unseen(books: Books, changes: Iterable[Change]) -> dict[tuple[str, str], str]:
    """What was changed and not found, by table and column."""
    return {(change.table, change.what): str(change) for change in changes if not books.found(change)}


def bound(books: Books, *, all_rows: bool) -> list[Change]:
    """Every change that must be found."""
    freedom = Freedom(books)
    changes = (change for table in KEYS for change in books.changes(table, all_rows=all_rows))
    return [change for change in changes if not freedom.holds(change)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_change_is_found_that_is_not_named_as_free(books, url):
    """Each column of each table once on both stores; on a file, which is changed quickly, many more."""
    assert (
        books.db.tables() - {"tallystick_migrations"}
        == {
            *KEYS,
            *FREE_TABLES,
            "schedules",  # `test_tamper_settings.py`
        }
        - OF_FILES[books.kind]
    )
    changes = bound(books, all_rows=False)
    kept = random.Random(7).sample(changes, SAMPLED[books.kind])
    once = {(change.table, change.what): change for change in changes}
    assert {table for table, _what in once} == set(KEYS)
    assert unseen(books, [*once.values(), *kept]) == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_column_is_named_as_free_that_is_not(books, request):
    """Of each one a change that is not found: in the books of the ended for some, of the open for others."""
    named = FREE if request.node.callspec.params["books"] == "ended" else FREE_OPEN
    freedom = Freedom(books)
    free: dict[tuple[str, str], list[Change]] = {}
    for table in KEYS:
        for change in books.changes(table, all_rows=table not in ("events", "idempotency")):
            if (change.table, change.what) in named and freedom.holds(change):
                free.setdefault((change.table, change.what), []).append(change)
    assert {place for place, changes in free.items() if not all(map(books.found, changes))} == set(named)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_change_of_every_row_is_found(books):
    changes = bound(books, all_rows=True)
    assert len(changes) > 50_000
    assert unseen(books, changes) == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_whatever_a_cell_says_verify_comes_to_its_end(books, timed):
    """Rows that no rule was written for are a finding: the check goes on with the others."""
    changes = random.Random(11).sample(bound(books, all_rows=False), 40)
    for change in changes:
        with books.made(change):
            assert verify(timed.runtime().store).findings_total > 0, change


def test_the_guide_has_the_lists():
    guide = (ROOT / "docs" / "guides" / "verify.md").read_text("utf-8")
    assert free_table() in guide
    assert open_table() in guide
